import BlobUpload
import Blobs

/// Compares all sources of a walk, in batches.
struct CheckPass: Sendable {
  let check: ContentCheck
  /// The most files of a batch, which is one request to a Fullbore server. More would save hardly any time, and take
  /// memory: some KiB for each file.
  private static let batch = 250
  /// Batches under way: while files of one are read here, the server reads those of the next.
  private static let width = 3

  /// Calls `take` with each result, on any thread. Throws if no other file can be compared, or the task was cancelled.
  func run(
    _ walk: PushWalk, _ opener: SourceOpener, _ feed: PushFeed, _ take: @escaping @Sendable (CheckedFile) -> Void
  ) async throws(UploadError) {
    let failure = await withTaskGroup(of: UploadError?.self) { group -> UploadError? in
      var (running, waiting): (Int, [UploadItem]) = (0, [])
      var isAtEnd = false
      while true {
        while !isAtEnd, waiting.count < Self.batch {
          if let opened = await opener.next(of: walk) { waiting += await feed.items(opened) } else { isAtEnd = true }
        }
        let batch = Array(waiting.prefix(Self.batch))
        waiting.removeFirst(batch.count)
        if batch.isEmpty { break }
        if running == Self.width {
          if let error = await group.next() ?? nil {
            group.cancelAll()
            return error
          }
        } else {
          running += 1
        }
        group.addTask {
          do throws(UploadError) {
            try await check.check(batch, take)
            return nil
          } catch {
            return error
          }
        }
      }
      while let ended = await group.next() {
        guard let ended else { continue }
        group.cancelAll()
        return ended
      }
      return nil
    }
    if let failure { throw failure }
    if Task.isCancelled { throw UploadError(.giveUp, .cancelled, "interrupted") }
  }
}
