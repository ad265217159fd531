import BlobTesting
import Blobs
import Testing

#if os(Linux)
  import Platform

  /// A file that counts the bytes read from it, and is deleted with the last source that refers to it.
  struct Lender: BlobSource {
    let source: FileSource
    private let file: TemporaryFile
    let tally: Tally
    let region: FileRegion?
    var access: BlobAccess { .random }

    init(_ file: TemporaryFile, _ tally: Tally, region: FileRegion? = nil) {
      source = FileSource(BytePath(file.path))
      self.file = file
      self.tally = tally
      self.region = region
    }

    func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

    func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
      Reader(try source.open(at: offset, cancel), tally, region)
    }

    private final class Reader: BlobReader {
      let reader: any BlobReader
      let tally: Tally
      let region: FileRegion?
      var info: BlobInfo { reader.info }

      init(_ reader: any BlobReader, _ tally: Tally, _ region: FileRegion?) {
        self.reader = reader
        self.tally = tally
        self.region = region
      }

      func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
        let count = try reader.read(into: buffer)
        tally.add(count)
        return count
      }

      func fileRegion() -> FileRegion? { region ?? reader.fileRegion() }
      func finish() throws(BlobError) { try reader.finish() }
    }
  }

  final class TemporaryFile: Sendable {
    let path: String

    init(_ source: PatternSource) throws {
      var template = Array("/tmp/fullbore-lending-XXXXXX".utf8CString)
      let descriptor = mkstemp(&template)
      try #require(descriptor >= 0)
      defer { close(descriptor) }
      path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
      let bytes = source.bytes(count: Int(source.length))
      let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      try #require(written == bytes.count)
    }

    deinit { unlink(path) }

    /// Applies a change; `pattern` is the file's content.
    func undergo(_ change: FileChange, _ pattern: PatternSource) throws {
      switch change {
      case .rewritten:
        let descriptor = open(path, O_WRONLY)
        #expect(pwrite(descriptor, "new", 3, 10) == 3)
        close(descriptor)
      case .cut: truncate(path, 20 << 20)
      case .longer: truncate(path, off_t(pattern.length + 1))
      case .replaced:
        let other = try TemporaryFile(pattern)
        rename(other.path, path)
      }
    }
  }

  /// Changes of a file while its pages are in flight.
  enum FileChange: CaseIterable { case rewritten, cut, longer, replaced }
#endif
