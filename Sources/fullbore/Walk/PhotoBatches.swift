import BlobUpload
import Blobs

/// Joins the batches of a feed so that the files of one photo, which follow each other, are in one batch, and gives these
/// files their group.
///
/// Nothing is remembered of a file whose batch was handed out. A file that is alone gets no group.
actor PhotoBatches {
  /// The last files of the batch before, to which the next batch may add.
  private var held: [UploadItem] = []
  private var hasEnded = false
  /// More files than this of one name are no photo.
  private static let most = 256

  /// Items of a feed.
  struct Found: Sendable {
    var items: [UploadItem]
    /// The feed may have further files. false: only sources at URLs follow, which belong to no photo.
    var mayHaveFiles = true
  }

  /// The next batch, without the items whose names are taken in this push; nil at the end. One call at a time. `naming`: gives
  /// the items their names. It gets the files of a photo together, since none of them is sent if the name of one is taken.
  func next<Failure: Error>(
    naming: @Sendable ([UploadItem]) async -> [UploadItem], _ feed: @Sendable () async throws(Failure) -> Found?
  ) async throws(Failure) -> [UploadItem]? {
    while !hasEnded {
      let found = try await feed()
      hasEnded = found == nil
      var batch = held + (found?.items ?? [])
      held = []
      if found?.mayHaveFiles == true, let last = batch.last, last.isOfPhoto(with: last) {
        let start = batch.dropLast().lastIndex { !$0.isOfPhoto(with: last) }.map { $0 + 1 } ?? 0
        if batch.count - start <= Self.most {
          held = Array(batch[start...])
          batch.removeSubrange(start...)
        }
      }
      batch = await naming(Self.grouped(batch))
      if !batch.isEmpty { return batch }
    }
    return nil
  }

  /// The items, of which those of one photo have their group.
  static func grouped(_ items: [UploadItem]) -> [UploadItem] {
    var items = items
    var start = 0
    while start < items.count {
      // By index, because a copy of an item takes longer than the comparison.
      let end = (start + 1..<items.count).first { !items[$0].isOfPhoto(with: items[start]) } ?? items.count
      if end - start > 1, items[start].group == nil, let photo = items[start].photoFile.map(PhotoGroups.key) {
        let files = items[start..<end].enumerated().sorted {
          ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset)
        }
        for (offset, file) in files.enumerated() {
          items[start + offset] = file.element
          items[start + offset].group = FileGroup(photo, isMain: offset == 0)
        }
      }
      start = end
    }
    return items
  }
}

extension UploadItem {
  /// The file by which a photo is recognised; nil: the source is no file. A rendered edit belongs to the photo of its original.
  fileprivate var photoFile: BytePath? {
    identity.isAbsolute ? identity : FoundRendition.kept(identity)?.original
  }

  fileprivate var rank: Int { photoFile.flatMap { PhotoPlace($0) }?.rank ?? 0 }

  /// Whether both are files of the same photo. An item is one with itself only if it is a photo's file.
  fileprivate func isOfPhoto(with other: UploadItem) -> Bool {
    guard let file = photoFile, let otherFile = other.photoFile else { return false }
    return PhotoPlace.areOfOnePhoto(file, otherFile)
  }
}
