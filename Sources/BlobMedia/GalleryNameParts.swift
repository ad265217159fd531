/// The parts of a file's name that `GalleryName` tells apart, as places in its bytes. The parser copies nothing, because
/// folders have many names.
package struct GalleryNameParts: Sendable {
  /// The kind of file that the extension stands for.
  package let kind: GalleryName.Kind
  /// The file is a rendered edit of another file.
  package let isRendered: Bool
  /// The place of the letter that tells what the file is, and is no part of the stem; nil: the name has none.
  private let letter: Int?
  /// The end of the stem.
  private let end: Int

  /// Analyses a name without a folder.
  package init(_ name: UnsafeRawBufferPointer) {
    let ending = Self.ending(of: name)
    kind = ending.kind
    (letter, isRendered, end) = Self.mark(in: name[..<ending.start], kind)
  }

  /// The kind of file that the extension stands for, and the place of the dot before all of the ending.
  static func ending(of name: UnsafeRawBufferPointer) -> (kind: GalleryName.Kind, start: Int) {
    let end = stemEnd(in: name[...])
    let kind = kind(of: name[end...].dropFirst())
    // Some programs append the extension of a sidecar to the photo's whole name: IMG_1234.CR2.xmp.
    guard kind == .sidecar else { return (kind, end) }
    let inner = stemEnd(in: name[..<end])
    return (kind, [.other, .sidecar].contains(Self.kind(of: name[inner..<end].dropFirst())) ? end : inner)
  }

  /// The stem of the name that was analysed.
  func stem(of name: UnsafeRawBufferPointer) -> [UInt8] {
    guard let letter else { return Array(name[..<end]) }
    return Array(name[..<letter]) + name[(letter + 1)..<end]
  }

  /// A hash of the stem of the name that was analysed, which begins with another hash.
  package func hashOfStem(in name: UnsafeRawBufferPointer, after hash: UInt64) -> UInt64 {
    var hash = hash
    // FNV-1a, 64 bits.
    for index in 0..<end where index != letter { hash = (hash ^ UInt64(name[index])) &* 0x100_0000_01b3 }
    return hash
  }

  /// Whether two names that were analysed have the same stem.
  package static func haveOneStem(
    _ parts: GalleryNameParts, in name: UnsafeRawBufferPointer, _ others: GalleryNameParts,
    in other: UnsafeRawBufferPointer
  ) -> Bool {
    guard parts.count == others.count else { return false }
    return (0..<parts.count).allSatisfy { name[parts.place($0)] == other[others.place($0)] }
  }

  /// A quick test for names that follow each other in a folder: false where the names differ within both stems.
  package static func mayHaveOneStem(_ name: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    var place = 0
    while place < min(name.count, other.count), name[place] == other[place] {
      // A stem may end here.
      if name[place] == UInt8(ascii: ".") || name[place] == UInt8(ascii: "-") { return true }
      place += 1
    }
    guard place < min(name.count, other.count), isLetterOrDigit(name[place]), isLetterOrDigit(other[place]) else {
      return true
    }
    // The letter of IMG_E1234 and of IMG_O1234 is no part of the stem.
    func isLetter(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "E") || byte == UInt8(ascii: "O") }
    return place == camera.count && name[..<place].elementsEqual(camera)
      && (isLetter(name[place]) || isLetter(other[place]))
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || GalleryName.isDigit(byte)
  }

  private var count: Int { letter == nil ? end : end - 1 }
  private func place(_ index: Int) -> Int {
    if let letter, index >= letter { index + 1 } else { index }
  }

  /// The place of the dot before the extension, or the end of a name without one.
  static func stemEnd(in name: Slice<UnsafeRawBufferPointer>) -> Int {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return name.endIndex }
    return dot
  }

  /// `IMG_E1234` is the rendering of `IMG_1234`. `IMG_O1234.AAE` describes the previous edit. Another manufacturer
  /// names renderings `…-edited`.
  private static func mark(
    in stem: Slice<UnsafeRawBufferPointer>, _ kind: GalleryName.Kind
  ) -> (letter: Int?, isRendered: Bool, end: Int) {
    let isShown = kind == .photo || kind == .video
    if stem.count > 5, stem.starts(with: camera), stem[5...].allSatisfy(GalleryName.isDigit) {
      if stem[4] == UInt8(ascii: "E") { return (4, isShown, stem.endIndex) }
      if stem[4] == UInt8(ascii: "O"), kind == .sidecar { return (4, false, stem.endIndex) }
    }
    if isShown, stem.count > edited.count, stem.suffix(edited.count).elementsEqual(edited) {
      return (nil, true, stem.endIndex - edited.count)
    }
    return (nil, false, stem.endIndex)
  }
  private static let camera = Array("IMG_".utf8)
  private static let edited = Array("-edited".utf8)

  private static func kind(of ending: Slice<UnsafeRawBufferPointer>) -> GalleryName.Kind {
    if ending.count > 8 { return .other }
    return kinds[key(of: ending)] ?? .other
  }

  /// The bytes of an extension in lower case, as a number.
  private static func key(of ending: some Sequence<UInt8>) -> UInt64 {
    ending.reduce(0) { key, byte in
      key << 8 | UInt64((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte)
    }
  }

  private static let kinds: [UInt64: GalleryName.Kind] = [
    (GalleryName.photos, GalleryName.Kind.photo), (GalleryName.raws, .raw), (GalleryName.videos, .video),
    (GalleryName.sidecars, .sidecar),
  ].reduce(into: [:]) { kinds, group in
    for ending in group.0 { kinds[key(of: ending.utf8)] = group.1 }
  }
}
