import Blobs

/// What the name of a file in a camera roll tells of it.
///
/// A camera's names fall into parts: `IMG_E1234.HEIC` is a prefix, a mark for what it is, a number and an extension.
public struct GalleryName: Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    case photo, raw, video
    /// Says how a photo was edited, or more about it.
    case sidecar
    case other
  }

  public let name: BytePath
  public let kind: Kind
  /// A rendering of what its owner did to another file.
  public let isRendered: Bool
  /// The name without its extension and without the mark of a rendering: what belongs together has it in common,
  /// whatever the case of its letters.
  public let stem: BytePath
  /// Of a series that was taken at one press; nil: it is of none.
  public let burst: BytePath?

  public init(_ name: BytePath) {
    self.name = name
    var (stem, ending) = Self.split(name.bytes)
    kind = Self.kind(of: ending)
    // Some name a sidecar after the whole name of its photo: IMG_1234.CR2.xmp.
    if kind == .sidecar, case (let inner, let photo) = Self.split(stem),
      ![.other, .sidecar].contains(Self.kind(of: photo))
    {
      stem = inner
    }
    let plain = Self.withoutMark(stem, kind)
    isRendered = plain.isRendered
    self.stem = BytePath(plain.stem)
    burst = Self.burst(in: plain.stem)
  }

  /// `IMG_E1234` → `IMG_1234`, rendered; `IMG_O1234.AAE` says how the one before it was edited; `…-edited` is another
  /// maker's way.
  private static func withoutMark(_ stem: [UInt8], _ kind: Kind) -> (stem: [UInt8], isRendered: Bool) {
    if stem.count > 5, isDigits(stem[5...]), stem.starts(with: "IMG_".utf8) {
      let mark = stem[4]
      if mark == UInt8(ascii: "E") { return (Array(stem[..<4] + stem[5...]), kind == .photo || kind == .video) }
      if mark == UInt8(ascii: "O"), kind == .sidecar { return (Array(stem[..<4] + stem[5...]), false) }
    }
    let edited = Array("-edited".utf8)
    if stem.count > edited.count, stem.suffix(edited.count).elementsEqual(edited), kind == .photo || kind == .video {
      return (Array(stem.dropLast(edited.count)), true)
    }
    return (stem, false)
  }

  /// `…_BURST012_COVER`, `00012IMG_00012_BURST20240102030405…`: what the pictures of a series have in common.
  private static func burst(in stem: [UInt8]) -> BytePath? {
    guard let mark = stem.firstRange(of: Array("BURST".utf8)) else { return nil }
    let digits = stem[mark.upperBound...].prefix { isDigit($0) }
    // A long number is the series' own, a short one the picture's place in it.
    if digits.count > 6 { return BytePath(stem[mark.lowerBound..<digits.endIndex]) }
    let before = stem[..<mark.lowerBound]
    return digits.isEmpty || before.isEmpty ? nil : BytePath(before)
  }

  /// The name without its extension alone.
  var ownStem: BytePath { BytePath(Self.split(name.bytes).stem) }

  private static func split(_ name: [UInt8]) -> (stem: [UInt8], ending: [UInt8]) {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return (name, []) }
    return (Array(name[..<dot]), Array(name[(dot + 1)...]))
  }

  private static func kind(of ending: [UInt8]) -> Kind {
    kinds[String(decoding: ending, as: UTF8.self).lowercased()] ?? .other
  }

  /// `IMG_1234`: what its edit is called follows from it.
  static func isNumbered(_ stem: BytePath) -> Bool {
    stem.bytes.count > 4 && stem.bytes.starts(with: "IMG_".utf8) && isDigits(stem.bytes[4...])
  }

  private static func isDigits(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy(isDigit) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  static let photos = ["heic", "jpg", "jpeg", "png", "heif", "hif", "avif", "webp", "tif", "tiff", "gif"]
  static let videos = ["mov", "mp4", "m4v", "3gp"]
  static let sidecars = ["aae", "xmp"]
  static let raws = [
    "dng", "cr2", "cr3", "crw", "nef", "nrw", "arw", "sr2", "srf", "raf", "orf", "rw2", "pef", "srw", "x3f", "3fr",
    "iiq", "rwl",
  ]
  private static let kinds: [String: Kind] = [
    (photos, Kind.photo), (videos, .video), (sidecars, .sidecar), (raws, .raw),
  ].reduce(into: [:]) { kinds, group in
    for ending in group.0 { kinds[ending] = group.1 }
  }
}
