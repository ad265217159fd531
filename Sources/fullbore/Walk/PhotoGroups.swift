import BlobMedia
import BlobUpload
import Blobs

/// Finds the files that belong to one photo by the names in their folder, also those that are not sent.
final class PhotoGroups: Sendable {
  private let folders: LatestFolder<PhotoNames>

  /// A larger folder, whose names would need much memory, has no groups, so its files get their numbers one by one.
  static let most = 100_000

  init() { folders = LatestFolder { PhotoNames($0, atMost: Self.most) } }

  struct Member: Sendable {
    let group: FileGroup
    /// The names of all files of the group; empty for a rendered edit, which is no file.
    let names: [BytePath]
    /// The name of the group's main file; nil for a rendered edit.
    let main: BytePath?
  }

  /// The group of each file; nil: it is not one of a photo's files. This call blocks.
  func groups(of sources: [BytePath]) -> [Member?] {
    // A folder that is being written now is listed once for all of them.
    var latest: (folder: BytePath, names: PhotoNames)?
    return sources.map { source in
      // A rendered edit has the number of its original.
      let original = FoundRendition.kept(source)?.original
      let file = original ?? source
      let name = GalleryName(file.name)
      guard file.isAbsolute, name.kind != .other else { return nil }
      let folder = file.folder
      if latest?.folder != folder { latest = (folder, folders.content(of: folder)) }
      guard let names = latest?.names.names(of: name.stem), !names.isEmpty else { return nil }
      let main = names.min(by: Self.isBefore)
      let group = FileGroup(Self.key(of: file), isMain: original == nil && main == file.name)
      return Member(group: group, names: original == nil ? names : [], main: original == nil ? main : nil)
    }
  }

  /// The order in which one file of a photo is the main file.
  static func isBefore(_ name: BytePath, _ other: BytePath) -> Bool {
    func rank(_ name: BytePath) -> Int { PhotoPlace(name)?.rank ?? .max }
    return (rank(name), name.description) < (rank(other), other.description)
  }

  /// The key of the group that a source belongs to; nil: it is none of a photo's files.
  static func photo(of source: BytePath) -> BytePath? {
    let file = FoundRendition.kept(source)?.original ?? source
    return file.isAbsolute && GalleryName(file.name).kind != .other ? key(of: file) : nil
  }

  /// The key of the group of a photo's file.
  static func key(of file: BytePath) -> BytePath { file.folder.appending(GalleryName(file.name).stem) }
}
