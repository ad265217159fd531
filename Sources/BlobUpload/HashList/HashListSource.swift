import BlobCrypto
import BlobSQLite
import Blobs

/// The facts that a new list states about itself.
package struct HashListFacts: Sendable {
  /// In seconds since 1970.
  package var date: Int64
  package var host: String
  package var version: String
  /// Patterns of what is not in the list.
  package var ignored: [String]
  package var comment: String
  package var format: HashListFormat
  /// The hashes of folders are in the list.
  package var hasFolders: Bool

  package init(
    date: Int64, host: String, version: String, ignored: [String], comment: String, format: HashListFormat,
    hasFolders: Bool
  ) {
    (self.date, self.host, self.version, self.ignored) = (date, host, version, ignored)
    (self.comment, self.format, self.hasFolders) = (comment, format, hasFolders)
  }
}

/// The bytes of a list, which are made from the table while they are read, and are never in memory as a whole.
package struct HashListSource: BlobSource {
  private let text: HashListText
  /// Length in bytes, and the C4 as version.
  package let whole: BlobInfo
  /// The C4 of the bytes.
  package let c4: String
  package var access: BlobAccess { .random }

  /// Reads the table once, to find out the length and the C4. This call blocks.
  package init(_ table: HashListTable, _ facts: HashListFacts) throws(BlobError) {
    text = HashListText(table: table, facts: facts)
    let pages = Pages(text)
    let digest = Digest(.sha512)
    var length: Int64 = 0
    while let page = try pages.next() {
      page.withUnsafeBytes { digest.update($0) }
      length += Int64(page.count)
    }
    c4 = HashListFormat.c4.text(digest.value())
    whole = BlobInfo(length: length, validator: Validator(version: c4))
  }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { whole }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard 0...(whole.length ?? 0) ~= offset else {
      throw BlobError(.outOfRange, "open a hash list at byte \(offset): there are \(whole.length ?? 0)")
    }
    return HashListBytes(Pages(text), whole, at: offset)
  }
}

private final class HashListBytes: BlobReader {
  let info: BlobInfo
  private let pages: Pages
  private var page: ArraySlice<UInt8> = []
  /// Bytes before the offset at which the reader was opened.
  private var skipped: Int64

  init(_ pages: Pages, _ info: BlobInfo, at offset: Int64) { (self.pages, self.info, skipped) = (pages, info, offset) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    while page.isEmpty || skipped > 0 {
      if page.isEmpty {
        guard let next = try pages.next() else { return 0 }
        page = next[...]
      }
      let count = Int(min(skipped, Int64(page.count)))
      page.removeFirst(count)
      skipped -= Int64(count)
    }
    let count = min(buffer.count, page.count)
    page.prefix(count).withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer($0)) }
    page.removeFirst(count)
    return count
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) {}
}

/// The parts of a list one after the other: the head, the files, the folders and the end.
private final class Pages {
  private enum Part { case head, files(BytePath), folders(BytePath), end, nothing }
  private let text: HashListText
  private var part = Part.head

  init(_ text: HashListText) { self.text = text }

  /// nil: there are no more.
  func next() throws(BlobError) -> [UInt8]? {
    do throws(SQLiteError) {
      while true {
        switch part {
        case .head:
          part = .files("")
          return Array(try text.head().utf8)
        case .files(let last):
          let (elements, path) = try text.files(after: last)
          part = path.map { .files($0) } ?? (text.facts.hasFolders ? .folders("") : .end)
          if !elements.isEmpty { return Array(elements.utf8) }
        case .folders(let last):
          let (elements, path) = try text.folders(after: last)
          part = path.map { .folders($0) } ?? .end
          if !elements.isEmpty { return Array(elements.utf8) }
        case .end:
          part = .nothing
          return Array(HashListText.end.utf8)
        case .nothing: return nil
        }
      }
    } catch {
      throw BlobError(.io, error.description)
    }
  }
}
