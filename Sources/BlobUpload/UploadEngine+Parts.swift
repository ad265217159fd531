import BlobHTTP
import Blobs

extension UploadEngine {
  /// A server that answers sooner is so near that one connection fills the link.
  static let farFrom: Duration = .milliseconds(10)

  /// Uploads in parts at once, where that is possible and the link gains by it. nil: it goes in one piece; what an earlier
  /// run has left in parts is given up then.
  func uploadInParts(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, _ ledger: (any UploadLedger)?,
    _ session: UploadSession?, _ receipts: [PartReceipt], isDoubted: Bool, _ progress: Progress
  ) async throws(UploadError) -> UploadResult? {
    if session != nil, session?.sizeOfParts == nil { return nil }
    var (session, receipts) = (session, receipts)
    if let earlier = session, let whole = earlier.joined, !isDoubted, let tus = uploader.destination.dialect as? Tus,
      let length = info.length
    {
      let run = ParallelRun(self, tus, source, info, length: length, to: target, ledger, earlier, receipts, progress)
      if let result = try await run.end(joinedAs: whole) { return result }
      await discard(earlier.holding(receipts), ledger)
      (session, receipts) = (nil, [])
    }
    guard !isDoubted, let tus = uploader.destination.dialect as? Tus, uploader.destination.limits.isParallel,
      let length = info.length, length >= uploader.parallelFrom, source.access == .random,
      // Checksums of what is sent are kept in one row.
      ledger == nil || !info.wantsTrace, uploader.partsAtOnce != 1
    else {
      if let session {
        // Parts that may be of another version are not gone on with.
        await discard(session.holding(receipts), ledger)
        if isDoubted, let validator = info.validator { ledger?.recognized(validator) }
      }
      return nil
    }
    if session == nil, try await !isWorthParts(target) { return nil }
    var run = ParallelRun(self, tus, source, info, length: length, to: target, ledger, session, receipts, progress)
    if let result = try await run.run() { return result }
    ledger?.restarted()
    return nil
  }

  /// Whether the server is far away, and there is nothing under the name: parts are not refused for that before they are
  /// all there.
  private func isWorthParts(_ target: UploadTarget) async throws(UploadError) -> Bool {
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
      // A connection may have been made for the first answer, and the machine may have been busy.
      for _ in 0..<2 where distance >= Self.farFrom { distance = min(distance, try await ask()) }
      return distance >= Self.farFrom
    } catch {
      // The upload will meet the same, and knows what to do.
      if error.side == .cancelled { throw error }
      return false
    }
  }
}
