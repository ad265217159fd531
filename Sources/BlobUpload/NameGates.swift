import BlobHTTP
import Synchronization

/// A path compared as on servers whose file system ignores case and Unicode form, for example on Windows and macOS.
struct FoldedName: Hashable, Sendable {
  /// Swift compares strings by canonical equivalence, so their Unicode form makes no difference.
  private let text: String

  init(_ url: HTTPURL) {
    // Some letters, for example the two small sigmas, share a capital letter: the conversion to capitals and back makes
    // them equal.
    text = String(decoding: PercentCoding.decoded(url.path.utf8), as: UTF8.self).uppercased().lowercased()
  }
}

/// Lets one upload at a time query a name and publish under it. Two files of one push may have names that the server
/// treats as equal: both uploads would find the name free, and one file would replace the other.
final class NameGates: Sendable {
  private let gates = Mutex<[FoldedName: (gate: Gate, users: Int)]>([:])

  /// Number of uploads that use a name or wait for one.
  var count: Int { gates.withLock { $0.values.reduce(0) { $0 + $1.users } } }

  /// Runs `body` while no other upload uses `name`. `hasWaited`: another upload used the name at the time of the call.
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
