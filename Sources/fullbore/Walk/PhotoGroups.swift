import BlobMedia
import BlobUpload
import Blobs

/// Finds the files that belong to one photo by their names.
final class PhotoGroups: Sendable {
  /// The names in a larger folder would need much memory, so its files get their numbers one by one.
  private static let most = 100_000
  private let folders = LatestFolder<[BytePath: [BytePath]]> { folder in
    var (names, count) = ([BytePath: [BytePath]](), 0)
    while let name = folder?.nextName() {
      let photo = GalleryName(name)
      if photo.kind == .other { continue }
      names[photo.stem, default: []].append(name)
      count += 1
      if count > PhotoGroups.most { return [:] }
    }
    return names
  }

  struct Member: Sendable {
    let group: FileGroup
    /// The names of all files of the group; empty for a rendered edit, which is no file.
    let names: [BytePath]
    /// The name of the group's main file; nil for a rendered edit.
    let main: BytePath?
  }

  /// The group of each file; nil: it is not one of a photo's files. Blocks.
  func groups(of sources: [BytePath]) -> [Member?] {
    // A folder that is being written now is listed once for all of them.
    var latest: (folder: BytePath, names: [BytePath: [BytePath]])?
    return sources.map { source in
      // A rendered edit has the number of its original.
      let original = FoundRendition.kept(source)?.original
      let file = original ?? source
      let name = GalleryName(file.name)
      guard file.isAbsolute, name.kind != .other else { return nil }
      let folder = file.folder
      if latest?.folder != folder { latest = (folder, folders.content(of: folder)) }
      guard let names = latest?.names[name.stem] else { return nil }
      let main = names.min { Self.rank($0) < Self.rank($1) }
      let group = FileGroup(folder.appending(name.stem), isMain: original == nil && main == file.name)
      return Member(group: group, names: original == nil ? names : [], main: original == nil ? main : nil)
    }
  }

  /// The picture comes before its RAW file, that before a film, and an original before its edit.
  private static func rank(_ name: BytePath) -> (Int, String) {
    let photo = GalleryName(name)
    let kind =
      switch photo.kind {
      case .photo: 0
      case .raw: 1
      case .video: 2
      case .sidecar, .other: 3
      }
    return (kind + (photo.isRendered ? 4 : 0), name.description)
  }
}
