import BlobHTTP
import Blobs
import Synchronization

/// The names under which this run has stored files, or has found files that an earlier run stored; for a run that may
/// replace files. The server may treat two names as one, and a file of this run must not replace another one.
final class OverwrittenNames: Sendable {
  /// Lets one upload at a time check a name and publish under it.
  let gates = NameGates()
  /// The server has refused a request that names the file to replace, because it does not implement conditions (501).
  let refusesConditions = Atomic(false)
  /// Hashes of the folded name and of the exact URL, because a million URLs would need much memory.
  private let owners = Mutex<[Int: Int]>([:])

  func note(_ url: HTTPURL, _ name: FoldedName) {
    let (key, owner) = (name.hashValue, url.text.hashValue)
    owners.withLock { $0[key] = owner }
  }

  /// The hash of the text of another URL under which a file was stored, and whose name the server may treat as equal; nil:
  /// there is none. Two names may have the same hash.
  func other(than url: HTTPURL, _ name: FoldedName) -> Int? {
    let (key, own) = (name.hashValue, url.text.hashValue)
    return owners.withLock { $0[key] }.flatMap { $0 == own ? nil : $0 }
  }
}

/// Replaces files that were at the server before, and none that this run has stored.
struct OverwriteGuard {
  let destination: QueueDestination
  private var overwritten: OverwrittenNames { destination.state.overwritten }

  /// Notes the files that an earlier run has stored, before any file of this run can replace one of them.
  func noteStored(_ works: [ClaimedItem]) {
    for work in works where work.item.target.overwrite {
      guard case .done = work.claim else { continue }
      let url = work.item.target.url.normalized
      overwritten.note(url, FoldedName(url))
    }
  }

  /// Runs `upload`, unless it would replace a file of this run whose name the server treats as equal. Throws then with
  /// side `.file`.
  func replacingNoneOfThisRun<Result>(
    _ item: UploadItem, _ target: UploadTarget, _ upload: () async throws(UploadError) -> Result
  ) async throws(UploadError) -> Result {
    // The receiver of a form decides where the file arrives.
    guard target.overwrite, destination.traits.recipient == nil else { return try await upload() }
    let url = target.url.normalized
    let name = FoldedName(url)
    return try await overwritten.gates.alone(at: name) { _ async throws(UploadError) in
      if let other = overwritten.other(than: url, name) { try await check(item, target, name, against: other) }
      let result = try await upload()
      overwritten.note(url, name)
      return result
    }
  }

  private func check(
    _ item: UploadItem, _ target: UploadTarget, _ name: FoldedName, against hash: Int
  ) async throws(UploadError) {
    let others: [JournalUpload]
    do {
      others = try await destination.journal.uploads(to: destination.id) {
        $0.target.hashValue == hash && HTTPURL($0.target).map(FoldedName.init) == name
      }
    } catch {
      throw UploadError(journal: error)
    }
    guard let other = others.first, let url = HTTPURL(other.target), try await isOneFile(target.url, url),
      try await !hasBytes(of: item, target)
    else { return }
    throw UploadError(
      .giveUp, .file,
      "\(target.url): it is not sent, since the server treats that name and \(url) as one, and has just got "
        + "\(other.source) under it, which would be lost. Rename one of the two files, or send them to different folders"
    )
  }

  /// Whether the responses to HEAD show the same file under both URLs. A server that does not let us look, or finds no
  /// file, has no such file.
  private func isOneFile(_ first: HTTPURL, _ second: HTTPURL) async throws(UploadError) -> Bool {
    var seen: [[String?]] = []
    for url in [first, second] {
      let response = try await destination.uploader.patiently("\(url)") { () async throws(UploadError) in
        let request = HTTPRequest("HEAD", url)
        let response = try await destination.engine.context().send(request)
        let refusal = UploadError(request, response)
        if case .retry = refusal.recovery { throw refusal }
        return response
      }
      if !response.isSuccess { return false }
      seen.append(["ETag", "Last-Modified", "Content-Length"].map { response.headers[$0] })
    }
    return seen[0] == seen[1]
  }

  /// Whether the server has the bytes of `item` under its name, so that nothing is lost if they are replaced.
  private func hasBytes(of item: UploadItem, _ target: UploadTarget) async throws(UploadError) -> Bool {
    guard item.source.access == .random, item.info.length != nil else { return false }
    do {
      try await destination.uploader.verify(item.source, item.info, at: target)
      return true
    } catch {
      if error.saysOtherBytes { return false }
      throw error
    }
  }
}
