import Blobs

/// A template for destination paths of pictures, with date and name fields: `{year}/{month}/{name}`.
public struct Layout: Sendable, Hashable {
  private enum Piece: Sendable, Hashable {
    case text([UInt8])
    case field(Field)
  }

  /// The fields that a template may contain in braces.
  public enum Field: String, Sendable, CaseIterable {
    /// Parts of the date when the picture was taken: the year with four digits, all others with two.
    case year, month, day, hour, minute, second
    /// The file's name, unchanged.
    case name
    /// The name before its last dot, and the extension after it. With `counter`, `IMG_1.JPG.xmp` ends in `JPG.xmp`: programs
    /// find it by the whole name of its picture.
    case stem, ext
    /// The file's folders below the source.
    case folder
    /// The model of the camera, as `CameraName` has it.
    case camera
    /// 1, or a higher number where another file has that path.
    case counter
  }

  private let pieces: [Piece]

  /// nil for an unknown field, or a path that leaves the destination; `problem` then describes the error.
  public init?(_ template: BytePath, problem: inout String) {
    var pieces: [Piece] = []
    var rest = template.bytes[...]
    while !rest.isEmpty {
      let text = rest.prefix { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: "}") }
      if !text.isEmpty { pieces.append(.text(Array(text))) }
      rest = rest.dropFirst(text.count)
      if rest.isEmpty { break }
      guard rest.first == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
        problem = "a brace without its other half"
        return nil
      }
      let name = String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self)
      guard let field = Field(rawValue: name) else {
        problem = "{\(name)} is not known; \(Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: " ")) are"
        return nil
      }
      pieces.append(.field(field))
      rest = rest[(end + 1)...]
    }
    self.pieces = pieces
    let sample = path(of: "folder/name.ext", taken: CaptureDate(2000, 1, 1))
    if pieces.count(where: { $0 == .field(.counter) }) > 1 {
      problem = "{counter} stands in it once"
      return nil
    }
    if !sample.isNameBelow || template.isAbsolute || template.hasTrailingSlash {
      problem = "wanted a path below the destination, that ends in a name and has no . or .. in it"
      return nil
    }
    if !pieces.contains(where: { [.field(.name), .field(.stem)].contains($0) }) {
      problem = "without {name} or {stem} several files would have one name"
      return nil
    }
  }

  /// Whether the template has this field.
  public func has(_ field: Field) -> Bool { pieces.contains(.field(field)) }

  /// The destination path of a file, whose `{counter}` is 1. `relative` is its path below the source. `camera`: nil if it is
  /// not known.
  public func path(of relative: BytePath, taken date: CaptureDate, camera: CameraName? = nil) -> BytePath {
    BytePath(uncountedPath(of: relative, taken: date, camera: camera).bytes.map { $0 == 0 ? UInt8(ascii: "1") : $0 })
  }

  /// Like `path`, with a NUL, which no name has, in place of the counter.
  package func uncountedPath(of relative: BytePath, taken date: CaptureDate, camera: CameraName?) -> BytePath {
    let name = relative.name.bytes
    let dot = has(.counter) ? GalleryName.endingStart(in: name) : GalleryName.extensionStart(in: name)
    let bytes = pieces.reduce(into: [UInt8]()) { bytes, piece in
      // Remove the dot before the extension of a name that has none.
      if piece == .field(.ext), dot == name.endIndex, bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
      bytes += part(piece, name, dot, relative, date, camera)
    }
    // Splitting and joining the components removes the slash after an empty folder.
    return BytePath(bytes).components.reduce(BytePath("")) { $0.appending($1) }
  }

  /// The bytes that replace `piece`. `dot` is the index in `name` at which the extension begins.
  private func part(
    _ piece: Piece, _ name: [UInt8], _ dot: Int, _ relative: BytePath, _ date: CaptureDate, _ camera: CameraName?
  ) -> [UInt8] {
    switch piece {
    case .text(let text): text
    case .field(.year): digits(date.year, 4)
    case .field(.month): digits(date.month, 2)
    case .field(.day): digits(date.day, 2)
    case .field(.hour): digits(date.hour, 2)
    case .field(.minute): digits(date.minute, 2)
    case .field(.second): digits(date.second, 2)
    case .field(.name): name
    case .field(.stem): Array(name[..<dot])
    case .field(.ext): Array(name[dot...].dropFirst())
    case .field(.folder): Array(relative.bytes.dropLast(name.count))
    case .field(.camera): Array((camera?.text ?? CameraName.unknown).utf8)
    case .field(.counter): [0]
    }
  }

  private func digits(_ number: Int, _ count: Int) -> [UInt8] {
    let text = Array("\(number)".utf8)
    return [UInt8](repeating: UInt8(ascii: "0"), count: max(0, count - text.count)) + text
  }
}
