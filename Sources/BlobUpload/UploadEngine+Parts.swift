import BlobHTTP
import Blobs

extension UploadEngine {
  /// If the server responds faster than this, the network latency is so small that one connection fills the link.
  static let farFrom: Duration = .milliseconds(10)

  /// Uploads in parallel parts, if that is possible and faster. nil: the file must be sent in one piece, and parts that
  /// an earlier run left are discarded.
  func uploadInParts(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, _ ledger: (any UploadLedger)?,
    resuming earlier: EarlierUpload, _ progress: UploadProgress
  ) async throws(UploadError) -> UploadResult? {
    let isDoubted = earlier.doubted != nil
    var (session, receipts) = (earlier.session, earlier.receipts)
    if session != nil, session?.sizeOfParts == nil { return nil }
    if let earlier = session, let whole = earlier.joined, !isDoubted,
      let concatenation = uploader.destination.traits.concatenation, let length = info.length
    {
      let run = ParallelRun(
        self, concatenation, source, info, length: length, to: target, ledger, earlier, receipts, progress)
      if let result = try await run.end(joinedAs: whole) { return result }
      await discard(earlier.holding(receipts), ledger)
      (session, receipts) = (nil, [])
    }
    guard !isDoubted, let concatenation = uploader.destination.traits.concatenation,
      uploader.destination.limits.isParallel,
      let length = info.length, length >= uploader.splitting.leastLength, source.access == .random,
      // A trace is one sequence of checksums, which parallel parts cannot produce.
      ledger == nil || !info.wantsTrace, uploader.partsAtOnce != 1,
      // The response for the parts of a member does not say whether it waits for the other members.
      target.group == nil
    else {
      if let session {
        // Parts that may belong to another version are not resumed.
        await discard(session.holding(receipts), ledger)
        if isDoubted, let validator = info.validator { ledger?.recognized(validator) }
      }
      return nil
    }
    if session == nil, try await !isWorthParts(info, target) { return nil }
    var run = ParallelRun(
      self, concatenation, source, info, length: length, to: target, ledger, session, receipts, progress)
    if let result = try await run.run() { return result }
    ledger?.restarted()
    return nil
  }

  /// Whether the server is far away, the name is free, and the source can be read at several offsets without being read
  /// up to each. A taken name would be refused only after all parts have arrived.
  private func isWorthParts(_ info: BlobInfo, _ target: UploadTarget) async throws(UploadError) -> Bool {
    if info.isSlowToSeek && uploader.partsAtOnce == nil { return false }
    var isTaken = false
    func ask() async throws(UploadError) -> Duration {
      let began = ContinuousClock.now
      let answer = try await context().send(HTTPRequest("HEAD", target.url))
      isTaken = answer.isSuccess
      return began.duration(to: .now)
    }
    do throws(UploadError) {
      var distance = try await ask()
      if isTaken && !target.overwrite { return false }
      if uploader.partsAtOnce != nil { return true }
      // The first response may have needed a new connection, and the machine may have been busy.
      for _ in 0..<2 where distance >= Self.farFrom { distance = min(distance, try await ask()) }
      return distance >= Self.farFrom
    } catch {
      // The upload will get the same error and handle it.
      if error.side == .cancelled { throw error }
      return false
    }
  }
}
