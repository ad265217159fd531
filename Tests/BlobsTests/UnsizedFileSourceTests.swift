import Blobs
import Platform
import Testing

struct UnsizedFileSourceTests {
  private func content(of path: BytePath) -> [UInt8] {
    let descriptor = path.open(O_RDONLY)
    defer { close(descriptor) }
    var (content, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 { content += buffer[..<count] }
    return content
  }

  private func content(_ reader: any BlobReader, atMost most: Int = .max) throws(BlobError) -> [UInt8] {
    var content: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 7, alignment: 1)
    defer { buffer.deallocate() }
    while content.count < most, case let count = try reader.read(into: buffer), count > 0 {
      content += buffer[..<count]
    }
    return content
  }

  @Test func anUnsizedFileIsReadToItsEndAndAgainFromItsStart() throws {
    let path: BytePath = "/proc/version"
    let source = UnsizedFileSource(path)
    #expect(try source.info(Cancellation()).length == nil && source.access == .sequential)
    for _ in 0..<2 { #expect(try content(source.open(at: 0, Cancellation())) == content(of: path)) }
  }

  @Test func readingGoesOnWhereItStopped() throws {
    let path: BytePath = "/proc/version"
    let source = UnsizedFileSource(path)
    var first: (any BlobReader)? = try source.open(at: 0, Cancellation())
    let begin = try content(#require(first), atMost: 14)
    first = nil
    #expect(try begin + content(source.open(at: 14, Cancellation())) == content(of: path))
    #expect { _ = try source.open(at: 3, Cancellation()) } throws: { ($0 as? BlobError)?.code == .outOfRange }
  }

  /// A `FileSource`, which would read it as an empty file, reports an error.
  @Test func aFileSourceRefusesIt() throws {
    #expect(try UnsizedFileSource.isNeeded(for: "/proc/version"))
    for source in [FileSource("/proc/version"), OpenFileSource("/proc/version")] as [any BlobSource] {
      #expect {
        _ = try source.info(Cancellation())
      } throws: {
        ($0 as? BlobError)?.message.contains("its size is 0 and it has content") == true
      }
    }
  }

  /// A pipe or a device may have replaced an empty file, and has no end.
  @Test func aPipeOrADeviceIsNoFileWithContent() throws {
    let folder = TemporaryFile.folder
    let (pipe, link) = (folder.appending("unsized-pipe"), folder.appending("unsized-link"))
    defer { for path in [pipe, link] { _ = path.withCString { unlink($0) } } }
    #expect(pipe.withCString { mkfifo($0, 0o600) } == 0)
    #expect(link.withCString { symlink("/dev/zero", $0) } == 0)
    for (path, kind) in [(pipe, "a pipe"), (link, "a device")] {
      for read in [
        { () throws -> Void in _ = try UnsizedFileSource.isNeeded(for: path) },
        { () throws -> Void in _ = try UnsizedFileSource(path).open(at: 0, Cancellation()) },
      ] {
        #expect {
          try read()
        } throws: {
          ($0 as? BlobError)?.message == "open \(path): not a regular file, but \(kind)"
        }
      }
    }
  }

  @Test func anEmptyFileIsAnEmptyFile() throws {
    let file = try TemporaryFile([])
    #expect(try !UnsizedFileSource.isNeeded(for: file.path))
    #expect(try FileSource(file.path).info(Cancellation()).length == 0)
  }
}
