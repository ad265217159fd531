import Blobs

/// The facts in the name of a file in a camera roll.
///
/// A camera's name such as `IMG_E1234.HEIC` consists of a prefix, a letter for the kind of file, a number and an
/// extension.
public struct GalleryName: Sendable, Hashable {
  /// What kind of file a name means, as its extension says.
  public enum Kind: Sendable, Hashable {
    /// A picture in a format that any program shows, such as JPEG or HEIC.
    case photo
    /// A picture as the sensor recorded it.
    case raw
    /// A film, also that of a Live Photo.
    case video
    /// A file that describes edits or other metadata of a photo.
    case sidecar
    /// Any other file.
    case other
  }

  /// The name, without a folder.
  public let name: BytePath
  /// The kind of file that the extension stands for.
  public let kind: Kind
  /// The file is a rendered edit of another file.
  public let isRendered: Bool
  /// The name without its extension and without the letter or suffix of a rendering. All files of a group have the same
  /// stem, except for upper and lower case.
  public let stem: BytePath
  /// The offset of the dot before the extension, or the end of a name without one.
  package static func extensionStart(in name: [UInt8]) -> Int {
    name.withUnsafeBytes { GalleryNameParts.stemEnd(in: $0[...]) }
  }

  /// The same, but the extension of a sidecar may follow the whole name of its picture: the picture's extension is part of the
  /// ending then.
  package static func endingStart(in name: [UInt8]) -> Int {
    name.withUnsafeBytes { GalleryNameParts.ending(of: $0).start }
  }

  /// A name that all pictures of one burst share; nil if the picture is not part of a burst.
  public var burst: BytePath? { Self.burst(in: stem.bytes) }

  /// Analyses a name. It looks at no file.
  public init(_ name: BytePath) {
    self.name = name
    (kind, isRendered, stem) = name.bytes.withUnsafeBytes { bytes in
      let parts = GalleryNameParts(bytes)
      return (parts.kind, parts.isRendered, BytePath(parts.stem(of: bytes)))
    }
  }

  /// The common part of names such as `…_BURST012_COVER` and `00012IMG_00012_BURST20240102030405…`.
  private static func burst(in stem: [UInt8]) -> BytePath? {
    guard let mark = stem.firstRange(of: Array("BURST".utf8)) else { return nil }
    let digits = stem[mark.upperBound...].prefix { isDigit($0) }
    // A long number identifies the burst; a short one is the picture's index in it.
    if digits.count > 6 { return BytePath(stem[mark.lowerBound..<digits.endIndex]) }
    let before = stem[..<mark.lowerBound]
    return digits.isEmpty || before.isEmpty ? nil : BytePath(before)
  }

  /// The name without its extension, with the mark of a rendering.
  package var ownStem: BytePath {
    name.bytes.withUnsafeBytes { BytePath($0[..<GalleryNameParts.stemEnd(in: $0[...])]) }
  }

  /// Whether the stem has the form `IMG_1234`, from which the name of an edit follows.
  static func isNumbered(_ stem: BytePath) -> Bool {
    stem.bytes.count > 4 && stem.bytes.starts(with: "IMG_".utf8) && isDigits(stem.bytes[4...])
  }

  private static func isDigits(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy(isDigit) }
  static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  static let photos = ["heic", "jpg", "jpeg", "png", "heif", "hif", "avif", "webp", "tif", "tiff", "gif"]
  static let videos = ["mov", "mp4", "m4v", "3gp"]
  static let sidecars = ["aae", "xmp"]
  static let raws = [
    "dng", "cr2", "cr3", "crw", "nef", "nrw", "arw", "sr2", "srf", "raf", "orf", "rw2", "pef", "srw", "x3f", "3fr",
    "iiq", "rwl",
  ]
}
