import BlobUpload
import Blobs
import Synchronization

/// Compares all sources of a walk, in batches.
struct CheckPass: Sendable {
  let check: ContentCheck
  /// The most files of a batch, which is one request to a Fullbore server. More would save hardly any time, and take
  /// memory: some KiB for each file.
  private static let batch = 250
  /// Batches under way: while files of one are read here, the server reads those of the next.
  private static let width = 3

  /// Calls `take` with the results of the files of one photo together, and with each other result, on any thread. Throws if
  /// no other file can be compared, or the task was cancelled.
  func run(
    _ walk: PushWalk, _ opener: SourceOpener, _ feed: PushFeed, _ take: @escaping @Sendable ([CheckedFile]) -> Void
  ) async throws(UploadError) {
    let failure = await withTaskGroup(of: UploadError?.self) { group -> UploadError? in
      var (running, waiting): (Int, [UploadItem]) = (0, [])
      var isAtEnd = false
      let photos = PhotoBatches()
      while true {
        while !isAtEnd, waiting.count < Self.batch {
          let found = await photos.next(naming: feed.withOwnNames) { () async -> PhotoBatches.Found? in
            guard let opened = await opener.next(of: walk) else { return nil }
            return await feed.found(opened)
          }
          if let found { waiting += found } else { isAtEnd = true }
        }
        let batch = Array(waiting.prefix(wholeBatch(of: waiting, isAtEnd: isAtEnd)))
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
            let photos = CheckedPhotos(batch, take)
            try await check.check(batch) { photos.add($0) }
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

  /// How many files of the beginning of `waiting` are a batch, so that no photo is divided.
  private func wholeBatch(of waiting: [UploadItem], isAtEnd: Bool) -> Int {
    let most = min(Self.batch, waiting.count)
    if most == waiting.count && isAtEnd { return most }
    guard most > 0, let key = waiting[most - 1].group?.key else { return most }
    let start = waiting[..<most].lastIndex { $0.group?.key != key }.map { $0 + 1 } ?? 0
    return start == 0 ? most : start
  }
}

/// Collects the results of each photo's files.
private final class CheckedPhotos: Sendable {
  private struct Photo {
    var count = 0
    var files: [CheckedFile] = []
  }
  private let photos: Mutex<[BytePath: Photo]>
  private let take: @Sendable ([CheckedFile]) -> Void

  init(_ items: [UploadItem], _ take: @escaping @Sendable ([CheckedFile]) -> Void) {
    var photos: [BytePath: Photo] = [:]
    for item in items { if let key = item.group?.key { photos[key, default: Photo()].count += 1 } }
    self.photos = Mutex(photos)
    self.take = take
  }

  func add(_ file: CheckedFile) {
    guard let key = file.item.group?.key else { return take([file]) }
    let whole = photos.withLock { photos -> [CheckedFile]? in
      photos[key]?.files.append(file)
      guard let photo = photos[key], photo.files.count == photo.count else { return nil }
      return photos.removeValue(forKey: key)?.files
    }
    if let whole { take(whole) }
  }
}
