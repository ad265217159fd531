import BlobMedia
import BlobUpload
import Blobs

/// Finds the files that belong to one photo by their names.
final class PhotoGroups: Sendable {
  /// The names in a larger folder would need much memory, so its files get their numbers one by one.
  static let most = 100_000
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
      let main = names.min(by: Self.isBefore)
      let group = FileGroup(folder.appending(name.stem), isMain: original == nil && main == file.name)
      return Member(group: group, names: original == nil ? names : [], main: original == nil ? main : nil)
    }
  }

  /// The picture comes before its RAW file, that before a film, and an original before its edit.
  private static func rank(_ photo: GalleryName) -> Int {
    let kind =
      switch photo.kind {
      case .photo: 0
      case .raw: 1
      case .video: 2
      case .sidecar, .other: 3
      }
    return kind + (photo.isRendered ? 4 : 0)
  }

  /// The order in which one file of a photo is the main file.
  static func isBefore(_ name: BytePath, _ other: BytePath) -> Bool {
    (rank(GalleryName(name)), name.description) < (rank(GalleryName(other)), other.description)
  }

  /// The order of files in which those of one photo follow each other, its main file first, at the place of the first of
  /// them. `path`: that of each file; the paths of one folder may be names only.
  static func order(of count: Int, _ path: (Int) -> BytePath) -> [Int] {
    // The hashes of stems: if two stems had the same, their photos would only be mixed.
    var first: [Int: Int] = [:]
    let keys = (0..<count).map { index -> (first: Int, rank: Int, index: Int) in
      let path = path(index)
      let photo = GalleryName(path.name)
      if photo.kind == .other { return (index, 0, index) }
      var hasher = Hasher()
      hasher.combine(path.folder)
      hasher.combine(photo.stem)
      let hash = hasher.finalize()
      if first[hash] == nil { first[hash] = index }
      return (first[hash] ?? index, rank(photo), index)
    }
    return keys.sorted { $0 < $1 }.map(\.index)
  }
}
