import BlobHTTP
import Synchronization

/// A path as a server compares it whose file system ignores case and Unicode form, as those of Windows and macOS do.
struct FoldedName: Hashable, Sendable {
  /// Swift strings are equal where they are canonically equivalent, so their Unicode form makes no difference.
  private let text: String

  init(_ url: HTTPURL) {
    // Some letters, for example the two small sigmas, share a capital letter: they become equal on the way up and down.
    text = String(decoding: PercentCoding.decoded(url.path.utf8), as: UTF8.self).uppercased().lowercased()
  }
}

/// Lets one upload at a time ask for a name and publish under it. Two files of one push may have names that are the same to
/// the server: both would be told that the name is free, and one would replace the other.
final class NameGates: Sendable {
  private let gates = Mutex<[FoldedName: (gate: Gate, users: Int)]>([:])

  /// Uploads that are at a name, or wait for one.
  var count: Int { gates.withLock { $0.values.reduce(0) { $0 + $1.users } } }

  /// Runs `body` while no other upload is at `name`. `hasWaited`: another one was there when this one came.
  func alone<Answer>(
    at name: FoldedName, _ body: (_ hasWaited: Bool) async throws(UploadError) -> Answer
  ) async throws(UploadError) -> Answer {
    let (gate, others) = gates.withLock { gates in
      let (gate, users) = gates[name] ?? (Gate(1), 0)
      gates[name] = (gate, users + 1)
      return (gate, users)
    }
    defer {
      gates.withLock { gates in
        let users = (gates[name]?.users ?? 0) - 1
        gates[name] = users > 0 ? (gate, users) : nil
      }
    }
    return try await gate.pass { () async throws(UploadError) in try await body(others > 0) }
  }
}
