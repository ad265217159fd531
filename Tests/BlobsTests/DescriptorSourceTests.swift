import BlobTesting
import Blobs
import Platform
import Testing

struct DescriptorSourceTests {
  @Test func endsWhereTheWriterCloses() throws {
    let pattern = PatternSource(length: 100_000, seed: 3)
    let source = try PipedDescriptor(pattern)
    #expect(try source.info().length == nil)
    #expect(try source.readAll() == pattern.bytes(count: 100_000))
    #expect(try source.readAll(at: 100_000) == [], "the end stays the end")
  }

  /// `poll` always reports regular files as readable.
  @Test func readsARegularFileFromWhereItIs() throws {
    let file = try TemporaryFile(Array("0123456789".utf8))
    let descriptor = file.path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
    defer { close(descriptor) }
    lseek(descriptor, 4, SEEK_SET)
    #expect(try DescriptorSource(descriptor).readAll() == Array("456789".utf8))
  }

  @Test func aClosedDescriptorIsAnError() throws {
    let error = #expect(throws: BlobError.self) { try DescriptorSource(1_000_000).readAll() }
    #expect(error?.code == .io)
  }
}

/// A descriptor that supplies the bytes of a pattern; nil: it supplies neither bytes nor an end.
struct PipedDescriptor: BlobSource {
  private let ends: Ends
  private let source: DescriptorSource

  init(_ pattern: PatternSource?) throws {
    let ends = try Ends()
    self.ends = ends
    source = DescriptorSource(ends.reading)
    guard let pattern else { return }
    // A descriptor of its own: once the read end is closed, the writing thread gets an error and ends.
    let writing = dup(ends.writing)
    SystemThread.start("descriptor-writer") {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 3333, alignment: 16)
      defer { buffer.deallocate() }
      var offset: Int64 = 0
      while offset < pattern.length {
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: pattern.length - offset)))
        pattern.fill(piece, at: offset)
        let count = send(writing, piece.baseAddress, piece.count, Int32(MSG_NOSIGNAL))
        if count <= 0 { break }  // the check has read enough
        offset += Int64(count)
      }
      shutdown(writing, Int32(SHUT_WR))
      close(writing)
    }
  }

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try source.open(at: offset, cancel), ends)
  }

  private final class Ends: Sendable {
    let reading: Int32
    let writing: Int32

    init() throws {
      var pair: [Int32] = [-1, -1]
      guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
        throw CheckFailure("no pair of sockets: error \(errno)")
      }
      (reading, writing) = (pair[0], pair[1])
    }

    deinit {
      close(reading)
      close(writing)
    }
  }

  /// Keeps the descriptors open.
  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let ends: Ends
    init(_ reader: any BlobReader, _ ends: Ends) { (self.reader, self.ends) = (reader, ends) }
    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { try reader.read(into: buffer) }
    func fileRegion() -> FileRegion? { reader.fileRegion() }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
