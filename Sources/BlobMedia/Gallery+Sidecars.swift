import Blobs

extension Gallery {
  /// The files beside a photo that may say how it was edited, of those that are there. `isThere` as in `choice`.
  ///
  /// `IMG_1234.AAE` comes before `IMG_O1234.AAE`, which is older; an XMP file is called like its photo, with or without
  /// that one's ending. Where a RAW file has the same stem, a packet without one is the RAW file's.
  public func sidecars(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> [BytePath] {
    guard !name.isRendered, name.kind == .photo || name.kind == .raw else { return [] }
    var adjustments = [name.stem]
    let prefix = Array("IMG_".utf8)
    if GalleryName.isNumbered(name.stem) {
      adjustments.append(BytePath(prefix + [UInt8(ascii: "O")] + name.stem.bytes.dropFirst(prefix.count)))
    }
    var found: [BytePath?] = []
    for stem in adjustments where found.isEmpty {
      if let file = Self.first(of: ["aae"], stem, isThere) { found.append(file) }
    }
    found.append(Self.first(of: ["xmp"], name.name, isThere))
    if name.kind == .raw || Self.first(of: GalleryName.raws, name.stem, isThere) == nil {
      found.append(Self.first(of: ["xmp"], name.stem, isThere))
    }
    return found.compactMap(\.self)
  }

  /// Another photo beside it that differs only in its ending; nil: it is the only one. A sidecar may be either's then, and
  /// both renderings would have one name.
  public func twin(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath? {
    for ending in GalleryName.photos {
      if let found = Self.first(of: [ending], name.stem, { $0 != name.name && isThere($0) }) { return found }
    }
    return nil
  }

  /// What a rendering of the edit of a photo is called: as its camera would call one, or else another maker.
  public func renditionName(of name: GalleryName) -> BytePath {
    guard GalleryName.isNumbered(name.stem) else { return BytePath(name.stem.bytes + Array("-edited.jpg".utf8)) }
    let digits = name.stem.bytes.dropFirst(4)
    return BytePath(Array("IMG_E".utf8) + digits + Array(".JPG".utf8))
  }
}
