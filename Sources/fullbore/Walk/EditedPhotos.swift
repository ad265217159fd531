import BlobMedia
import Blobs

/// Finds photos with a rendered edit or a sidecar.
final class EditedPhotos: Sendable {
  private struct Names: Sendable {
    var rendered: Set<BytePath> = []
    var noted: Set<BytePath> = []
  }
  private let folders = LatestFolder<Names> { folder in
    var names = Names()
    while let name = folder?.nextName() {
      let name = GalleryName(name)
      if name.isRendered { names.rendered.insert(name.stem) }
      if name.kind == .sidecar { names.noted.insert(name.stem) }
    }
    return names
  }

  /// Whether the photo has a rendered edit. This call blocks.
  func contains(_ stem: BytePath, in folder: BytePath) -> Bool {
    folders.content(of: folder).rendered.contains(stem)
  }

  /// Whether the photo has a sidecar. This call blocks.
  func hasNotes(_ stem: BytePath, in folder: BytePath) -> Bool { folders.content(of: folder).noted.contains(stem) }
}
