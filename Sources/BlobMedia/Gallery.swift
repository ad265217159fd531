import Blobs

/// Which of a photo's versions are wanted.
public enum GalleryEdits: String, Sendable, CaseIterable {
  /// What its owner sees: the rendered edit where there is one, else the original.
  case current
  /// As it was taken.
  case original
  case both
}

/// What becomes of a file of a camera roll.
public enum GalleryChoice: Sendable, Hashable {
  case taken
  /// It is an original, an edit or a sidecar that is not wanted, for the reason given.
  case leftOut(reason: String)
}

/// The files of one folder of a camera roll, or of one that was exported: what belongs together, and what is wanted.
///
/// It asks for the names it needs, one by one, so that a folder may have any number of them.
public struct Gallery: Sendable {
  public let edits: GalleryEdits

  public init(_ edits: GalleryEdits = .current) { self.edits = edits }

  /// Whether a file is wanted. `isThere` tells which other names its folder has.
  ///
  /// A RAW file stays beside the picture that the camera made of it, and a Live Photo's film beside its picture: none
  /// is an edit of the other. Of edits that exist as a sidecar alone nothing is dropped: the sidecar goes along.
  public func choice(_ name: GalleryName, _ isThere: (BytePath) -> Bool) -> GalleryChoice {
    switch edits {
    case .both: return .taken
    case .original:
      if name.isRendered, original(of: name, isThere) != nil {
        return .leftOut(reason: "an edit; originals are wanted")
      }
      // An XMP file may hold more than edits; Apple's holds nothing else.
      if name.kind == .sidecar, isAdjustment(name) { return .leftOut(reason: "an edit; originals are wanted") }
      return .taken
    case .current:
      if name.isRendered || name.kind == .raw || name.kind == .other { return .taken }
      if name.kind == .sidecar && !isAdjustment(name) { return .taken }
      guard let edit = rendering(of: name, isThere) else { return .taken }
      return .leftOut(reason: "its edit \(edit) is sent")
    }
  }

  /// The file whose date counts for all that belong together: the picture of a Live Photo's film, of a sidecar, of an
  /// edit. The name itself where it stands alone.
  public func leader(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath {
    if !name.isRendered, name.kind == .photo || name.kind == .raw { return name.name }
    for endings in [GalleryName.photos, GalleryName.raws, GalleryName.videos] {
      if let found = Self.first(of: endings, name.stem, isThere) { return found }
    }
    return name.name
  }

  /// The other files that belong to a leader, of which the first that has a date counts where the leader has none: the
  /// RAW file of a picture, and the film of a Live Photo.
  public func companions(of leader: GalleryName, _ isThere: (BytePath) -> Bool) -> [BytePath] {
    if leader.kind == .other || leader.kind == .sidecar { return [] }
    return [GalleryName.raws, GalleryName.photos, GalleryName.videos].compactMap {
      Self.first(of: $0, leader.stem) { $0 != leader.name && isThere($0) }
    }
  }

  /// The rendered edit of an original or of its sidecar; of a film its film, and of a picture its picture.
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

  /// Cameras write their endings in capitals, other programs in small letters.
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
