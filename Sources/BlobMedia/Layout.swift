import Blobs

/// Where pictures go, made of when and what they are: `{year}/{month}/{name}`.
public struct Layout: Sendable, Hashable {
  private enum Piece: Sendable, Hashable {
    case text([UInt8])
    case field(Field)
  }

  /// What may stand in braces.
  public enum Field: String, Sendable, CaseIterable {
    case year, month, day, hour, minute, second
    /// The file's name, as it is.
    case name
    /// The name up to its last dot, and what comes after that.
    case stem, ext
    /// The folders it lies in, below the source.
    case folder
  }

  private let pieces: [Piece]

  /// nil, with what is wrong with it in `problem`: a field that is not known, or a path that leads elsewhere.
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
    if !sample.isNameBelow || template.isAbsolute || template.hasTrailingSlash {
      problem = "wanted a path below the destination, that ends in a name and has no . or .. in it"
      return nil
    }
    if !pieces.contains(where: { [.field(.name), .field(.stem)].contains($0) }) {
      problem = "without {name} or {stem} several files would have one name"
      return nil
    }
  }

  /// Where a file goes: `relative` is where it lies below its source.
  public func path(of relative: BytePath, taken date: CaptureDate) -> BytePath {
    let name = relative.name.bytes
    let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.endIndex
    let bytes = pieces.reduce(into: [UInt8]()) { bytes, piece in
      // The dot before an ending that a name does not have.
      if piece == .field(.ext), dot == name.endIndex, bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
      bytes += part(piece, name, dot, relative, date)
    }
    // Where a folder is empty its slash is too much.
    return BytePath(bytes).components.reduce(BytePath("")) { $0.appending($1) }
  }

  /// The bytes that take the place of `piece`. `dot`: where the ending of `name` begins.
  private func part(
    _ piece: Piece, _ name: [UInt8], _ dot: Int, _ relative: BytePath, _ date: CaptureDate
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
    }
  }

  private func digits(_ number: Int, _ count: Int) -> [UInt8] {
    let text = Array("\(number)".utf8)
    return [UInt8](repeating: UInt8(ascii: "0"), count: max(0, count - text.count)) + text
  }
}
