import Blobs

extension Gallery {
  /// The existing sidecar files that may describe edits of a photo. For `isThere` see `choice`.
  ///
  /// `IMG_1234.AAE` takes precedence over `IMG_O1234.AAE`, which is older. An XMP file has its photo's name with or
  /// without the photo's extension. If there is a RAW file with the same stem, an XMP file named by the stem alone
  /// belongs to the RAW file.
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

  /// Another photo in the folder that differs only in its extension; nil if there is none. With such a photo, a sidecar
  /// could belong to either, and both renderings would get the same name.
  public func twin(of name: GalleryName, _ isThere: (BytePath) -> Bool) -> BytePath? {
    for ending in GalleryName.photos {
      if let found = Self.first(of: [ending], name.stem, { $0 != name.name && isThere($0) }) { return found }
    }
    return nil
  }

  /// The name for a rendering of a photo's edit: in the style of the camera if it has one, otherwise `…-edited.jpg`.
  public func renditionName(of name: GalleryName) -> BytePath {
    guard GalleryName.isNumbered(name.stem) else { return BytePath(name.stem.bytes + Array("-edited.jpg".utf8)) }
    let digits = name.stem.bytes.dropFirst(4)
    return BytePath(Array("IMG_E".utf8) + digits + Array(".JPG".utf8))
  }
}
