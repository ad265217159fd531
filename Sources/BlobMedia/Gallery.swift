import Blobs

/// Which versions of a photo to upload.
public enum GalleryEdits: String, Sendable, CaseIterable {
  /// The rendered edit if there is one, otherwise the original.
  case current
  /// The original only.
  case original
  /// Both versions.
  case both
}

/// What to do with a file of a camera roll.
public enum GalleryChoice: Sendable, Hashable {
  /// The file is sent.
  case taken
  /// The file is an original, an edit or a sidecar that is not wanted, for the given reason.
  case leftOut(reason: String)
}

/// Finds the files of a folder of a camera roll, or of an exported one, that belong together, and selects the wanted
/// ones.
///
/// It looks up single names, so that a folder may have any number of files.
public struct Gallery: Sendable {
  /// Which versions of a photo are wanted.
  public let edits: GalleryEdits

  /// Creates a gallery that selects these versions. It looks at nothing.
  public init(_ edits: GalleryEdits = .both) { self.edits = edits }

  /// Whether a file is wanted. `isThere` returns whether the folder has a file of that name.
  ///
  /// A RAW file is kept beside the picture that the camera made from it, and a Live Photo's film beside its picture,
  /// because neither is an edit of the other. If an edit exists only as a sidecar, no file is left out: the sidecar is
  /// sent too.
  public func choice(_ name: GalleryName, _ isThere: (BytePath) -> Bool) -> GalleryChoice {
    switch edits {
    case .both: return .taken
    case .original:
      if name.isRendered, original(of: name, isThere) != nil {
        return .leftOut(reason: "an edit; originals are wanted")
      }
      // An XMP file may contain more than edits; Apple's AAE files contain only edits.
      if name.kind == .sidecar, isAdjustment(name) { return .leftOut(reason: "an edit; originals are wanted") }
      return .taken
    case .current:
      if name.isRendered || name.kind == .raw || name.kind == .other { return .taken }
      if name.kind == .sidecar && !isAdjustment(name) { return .taken }
      guard let edit = rendering(of: name, isThere) else { return .taken }
      return .leftOut(reason: "its edit \(edit) is sent")
    }
  }

  /// The file whose date applies to all files of a group. For a Live Photo's film, a sidecar or an edit this is the
  /// picture. For a file without a group it is the file itself.
  public func leader(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath {
    if !name.isRendered, name.kind == .photo || name.kind == .raw { return name.name }
    for endings in [GalleryName.photos, GalleryName.raws, GalleryName.videos] {
      if let found = Self.first(of: endings, name.stem, isThere) { return found }
    }
    return name.name
  }

  /// The other files of a leader's group: the RAW file of a picture, and the film of a Live Photo. If the leader has no
  /// date, the first companion with a date provides it.
  public func companions(of leader: GalleryName, _ isThere: (BytePath) -> Bool) -> [BytePath] {
    if leader.kind == .other || leader.kind == .sidecar { return [] }
    return [GalleryName.raws, GalleryName.photos, GalleryName.videos].compactMap {
      Self.first(of: $0, leader.stem) { $0 != leader.name && isThere($0) }
    }
  }

  /// The rendered edit of an original or of its sidecar. For a film this is a film; for a picture it is a picture or a
  /// film.
  private func rendering(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath? {
    let kinds = name.kind == .video ? [GalleryName.videos] : [GalleryName.photos, GalleryName.videos]
    for stem in Self.renderedStems(of: name.stem) {
      for endings in kinds {
        if let found = Self.first(of: endings, stem, isThere) { return found }
      }
    }
    return nil
  }

  func original(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath? {
    let kinds = name.kind == .video ? [GalleryName.videos] : [GalleryName.photos, GalleryName.raws]
    for endings in kinds {
      if let found = Self.first(of: endings, name.stem, isThere) { return found }
    }
    return nil
  }

  static func renderedStems(of stem: BytePath) -> [BytePath] {
    var stems = [BytePath(stem.bytes + Array("-edited".utf8))]
    let prefix = Array("IMG_".utf8)
    if GalleryName.isNumbered(stem) {
      stems.append(BytePath(prefix + [UInt8(ascii: "E")] + stem.bytes.dropFirst(prefix.count)))
    }
    return stems
  }

  private func isAdjustment(_ name: GalleryName) -> Bool {
    name.name.bytes.suffix(4).map { $0 | 0x20 } == Array(".aae".utf8).map { $0 | 0x20 }
  }

  /// Tries upper case first, as cameras write extensions, then lower case, as other programs do.
  static func first(of endings: [String], _ stem: BytePath, _ isThere: (BytePath) -> Bool) -> BytePath? {
    for ending in endings {
      for written in [ending.uppercased(), ending] {
        let name = BytePath(stem.bytes + [UInt8(ascii: ".")] + Array(written.utf8))
        if isThere(name) { return name }
      }
    }
    return nil
  }
}
