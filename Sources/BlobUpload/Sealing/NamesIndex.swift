import BlobHTTP
import Blobs

/// A file that says what the files with opaque names are called. It is sealed at the destination, and `age -d` shows
/// its lines: `fullbore-names 1`, `key` and the key of the names, `written` and when it was written, and then one for
/// each file. The line of a file has its path at the destination, the length and the modification time (`-`: unknown),
/// and the path, percent-encoded.
///
/// Times are in nanoseconds since 1970, and lengths are those of the sealed files.
package struct NamesIndex: Sendable {
  package struct Entry: Sendable, Hashable {
    package var sealed: BytePath
    package var plain: BytePath
    package var length: Int64?
    package var modified: Int64?
  }

  /// The lines before the entries.
  package struct Head: Sendable {
    package var names: SealedNames
    package var written: Int64
  }

  private static let first = "fullbore-names 1"

  /// The bytes of an index of these files, and how many of them are in it: fewer if all would be too many bytes.
  static func bytes(
    of files: [UnindexedFile], _ names: SealedNames, at written: Int64
  ) -> (bytes: [UInt8], count: Int) {
    var bytes = Array("\(first)\nkey \(hexDigits(names.key))\nwritten \(written)\n".utf8)
    var count = 0
    for file in files where bytes.count < most {
      let words = [
        names.path(of: file.path).description, file.length.map { "\($0)" } ?? "-",
        file.modified.map { "\($0)" } ?? "-", HTTPURL.encode(file.path.bytes),
      ]
      bytes += Array(words.joined(separator: " ").utf8) + [UInt8(ascii: "\n")]
      count += 1
    }
    return (bytes, count)
  }

  /// An index ends after the entry with which it has so many bytes, or after so many entries.
  private static let most = 4 << 20
  static let mostEntries = 10_000
  /// No index that was written here has more bytes, or a longer line.
  private static let mostRead: Int64 = 16 << 20
  private static let longestLine = 64 << 10
}

// An index that is read may be hostile: everyone who has the public key can seal one.
extension NamesIndex {
  /// Calls `take` with each entry, some at a time, and returns what stands before them. `take` may return false:
  /// nothing else is read then. An entry whose opaque path does not follow from the key and the path is refused, so
  /// that whoever does not have the key cannot give files other names. This call blocks. Throws what reading throws,
  /// and `.unsupported` if this is no index, or not one as it should be.
  @discardableResult
  package static func read(
    _ source: any BlobSource, _ cancel: Cancellation, _ take: (Head, [Entry]) throws(BlobError) -> Bool
  ) throws(BlobError) -> Head {
    let reader = try source.open(at: 0, cancel)
    if let length = reader.info.length, length > mostRead { throw refused("it has \(length) bytes, which is too many") }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var parser = Parser()
    var (rest, total): ([UInt8], Int64) = ([], 0)
    while true {
      let count = try reader.readChecked(into: buffer)
      if count == 0 { break }
      total += Int64(count)
      if total > mostRead { throw refused("it has more than \(mostRead) bytes") }
      rest += buffer.prefix(count)
      let entries = try parser.take(&rest)
      if rest.count > longestLine { throw refused("line \(parser.line) is too long") }
      if let head = parser.head, try !take(head, entries) { return head }
    }
    guard rest.isEmpty, let head = parser.head else { throw refused("it ends in line \(parser.line)") }
    return head
  }

  private static func refused(_ reason: String) -> BlobError {
    BlobError(.unsupported, "read an index of sealed names: \(reason)")
  }

  private struct Parser {
    private(set) var line = 1
    private(set) var head: Head?
    private var names: SealedNames?

    /// Removes all whole lines from `bytes`.
    mutating func take(_ bytes: inout [UInt8]) throws(BlobError) -> [Entry] {
      var (entries, start): ([Entry], Int) = ([], 0)
      while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
        if end - start > NamesIndex.longestLine { throw refused("line \(line) is too long") }
        if let entry = try take(String(decoding: bytes[start..<end], as: UTF8.self)) { entries.append(entry) }
        start = end + 1
        line += 1
      }
      bytes.removeFirst(start)
      return entries
    }

    private mutating func take(_ text: String) throws(BlobError) -> Entry? {
      let words = text.split(separator: " ", omittingEmptySubsequences: false)
      switch line {
      case 1:
        if text != NamesIndex.first { throw refused("it begins with another line than '\(NamesIndex.first)'") }
      case 2:
        let key = words.count == 2 && words[0] == "key" ? NamesIndex.bytes(ofHex: words[1]) : nil
        names = key.flatMap { SealedNames(key: $0) }
        if names == nil { throw refused("it has no key of the names") }
      case 3:
        guard words.count == 2, words[0] == "written", let written = Int64(words[1]), let names else {
          throw refused("it does not say when it was written")
        }
        head = Head(names: names, written: written)
      default:
        guard words.count == 4, let length = number(words[1]), let modified = number(words[2]),
          let plain = PercentCoding.decode(words[3].utf8).map({ BytePath($0) }), plain.isNameBelow,
          Sealing.isName(plain.name.bytes), !plain.bytes.contains(0)
        else { throw refused("line \(line) names no file") }
        let sealed = BytePath(String(words[0]))
        if names?.path(of: plain) != sealed { throw refused("line \(line) gives a file a name that is not its own") }
        return Entry(sealed: sealed, plain: plain, length: length, modified: modified)
      }
      return nil
    }

    /// nil: this is no number; its value is nil for a dash.
    private func number(_ word: Substring) -> Int64?? {
      if word == "-" { return .some(nil) }
      return Int64(word).map { .some($0) }
    }
  }

  private static func bytes(ofHex text: Substring) -> [UInt8]? {
    let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count % 2 == 0 else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = digits[index], let low = digits[index + 1] else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }
}
