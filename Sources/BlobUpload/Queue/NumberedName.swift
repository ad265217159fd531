import Blobs

/// A path with a number in it that tells it from others.
package struct NumberedName: Sendable, Hashable {
  /// The path before it got a number, or the one with number 1.
  package let first: BytePath
  /// The offset of the digit 1 in `first` that the number replaces; nil: the number is put before the extension.
  package let counter: Int?
  package private(set) var number = 1
  private static let most = 9_999

  /// A NUL in the path, which no name has, stands for the number.
  package init(_ path: BytePath) {
    counter = path.bytes.firstIndex(of: 0)
    var first = path
    if let counter { first.bytes[counter] = UInt8(ascii: "1") }
    self.first = first
  }

  /// The name of which a journal has the path, the counter's offset and the number. nil: the path has no such number.
  init?(_ path: BytePath, counter: Int?, number: Int) {
    let digits = Array("\(number)".utf8)
    var bytes = path.bytes
    let name = path.name.bytes
    // Without a counter, the number follows a dash, before the extension.
    let start = counter ?? bytes.count - name.count + Self.end(name) - digits.count
    guard 1...Self.most ~= number, start >= 0, start <= bytes.count - digits.count else { return nil }
    let places = start..<(start + digits.count)
    guard bytes[places].elementsEqual(digits) else { return nil }
    if counter != nil {
      bytes.replaceSubrange(places, with: [UInt8(ascii: "1")])
    } else {
      guard number > 1, start > 0, bytes[start - 1] == UInt8(ascii: "-") else { return nil }
      bytes.removeSubrange((start - 1)..<places.upperBound)
    }
    (first, self.counter, self.number) = (BytePath(bytes), counter, number)
  }

  /// The path with a NUL in place of a counter, as it was given.
  package var template: BytePath {
    var template = first
    if let counter { template.bytes[counter] = 0 }
    return template
  }

  /// The name of a file that an earlier run has given its number. `name`: that of its source. A sealed file has another
  /// ending after it.
  package init(_ path: BytePath, of name: BytePath) {
    let isSealed = Sealing.isName(path.bytes) && !Sealing.isName(name.bytes)
    let name = isSealed ? BytePath(name.bytes + Sealing.ending.bytes) : name
    self.init(path)
    let (own, numbered) = (name.bytes, path.name.bytes)
    let end = counter == nil && Self.end(own) < numbered.count ? Self.end(own) : 0
    guard end > 0, numbered.starts(with: own[..<end]), numbered[end] == UInt8(ascii: "-") else { return }
    let digits = numbered[(end + 1)...].prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard let number = Int(String(decoding: digits, as: UTF8.self)), 2...Self.most ~= number,
      numbered[digits.endIndex...].elementsEqual(own[end...])
    else { return }
    self.init(path.folder.appending(name))
    self.number = number
  }

  /// The offset in a name at which its number is put. An XMP file may have the whole name of its photo, and a sealed file
  /// has that of the file in it.
  private static func end(_ name: [UInt8]) -> Int {
    if Sealing.isName(name) { return end(Array(name.dropLast(Sealing.ending.bytes.count))) }
    func dot(_ name: ArraySlice<UInt8>) -> Int? {
      name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > name.startIndex ? $0 : nil }
    }
    guard let last = dot(name[...]) else { return name.count }
    let isXMP = name[last...].map { $0 | 0x20 } == Array(".xmp".utf8)
    return isXMP ? dot(name[..<last]) ?? last : last
  }

  package var path: BytePath {
    if number == 1 { return first }
    let (before, after) = pieces
    return BytePath(before + Array("\(number)".utf8) + after)
  }

  /// The bytes before and after a number over 1.
  private var pieces: (before: [UInt8], after: ArraySlice<UInt8>) {
    if let counter { return (Array(first.bytes[..<counter]), first.bytes[(counter + 1)...]) }
    let name = first.name.bytes
    let end = first.bytes.count - name.count + Self.end(name)
    return (first.bytes[..<end] + [UInt8(ascii: "-")], first.bytes[end...])
  }

  /// The number with which this would be `path`; nil: none.
  func number(of path: BytePath) -> Int? {
    if path == first { return 1 }
    let ((before, after), bytes) = (pieces, path.bytes)
    guard bytes.count > before.count + after.count, bytes.starts(with: before),
      bytes.suffix(after.count).elementsEqual(after)
    else { return nil }
    let digits = bytes[before.count..<(bytes.count - after.count)]
    guard digits.count <= 4, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    return Int(String(decoding: digits, as: UTF8.self)).flatMap { 2...Self.most ~= $0 ? $0 : nil }
  }

  /// Returns false if there are too many files of one name.
  package mutating func count() -> Bool { count(to: number + 1) }

  /// Returns false if the number is over the largest one.
  package mutating func count(to number: Int) -> Bool {
    self.number = number
    return number <= Self.most
  }
}

extension UploadItem {
  /// nil: the number is too large.
  package func under(_ number: Int, _ destination: UploadDestination) -> UploadItem? {
    var numbered = numbered ?? NumberedName(target.plainPath)
    guard numbered.count(to: number) else { return nil }
    return named(numbered, destination)
  }

  package func named(_ numbered: NumberedName, _ destination: UploadDestination) -> UploadItem {
    var item = self
    (item.numbered, item.twin) = (numbered, nil)
    item.target = destination.target(
      numbered.path, length: target.length, contentType: target.contentType, overwrite: target.overwrite)
    (item.target.modified, item.target.metadata, item.target.group) = (target.modified, target.metadata, target.group)
    return item
  }

  /// The number under which this version of the item is done, if it is; `known`: what `Journal.numbersDone` has of it.
  package func number(among known: [JournalNumbers.NumberDone]) -> Int? {
    let intent = intent()
    return known.filter { intent.match(with: $0.entry.intent) != .different }
      .max { $0.entry.updated < $1.entry.updated }?.number
  }

  /// Whether the name has a number because another file has the name without it.
  package var isRenamed: Bool { (numbered?.number ?? 1) > 1 }
}
