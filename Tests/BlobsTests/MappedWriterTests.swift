import BlobTesting
import TestSupport
import Blobs
import Platform
import Testing

/// Files that are written through a memory mapping. Their times change only when a page is first written after the
/// kernel has written it back to the disk.
@Suite(.enabled(if: MappedFile.isSupported, "no folder here is on a file system that shows writes through a mapping"))
struct MappedWriterTests {
  private static let pages = 512
  private static let pageSize = 4096

  enum Kind: CaseIterable, Sendable {
    case byName, held
    func source(_ path: BytePath) -> any BlobSource { self == .byName ? FileSource(path) : OpenFileSource(path) }
  }

  /// The pages are dirty when the file is opened, so without a write-back no later store would be visible.
  @Test(arguments: Kind.allCases, [false, true])
  func aStoreIntoADirtyPageIsSeen(_ kind: Kind, _ isClosed: Bool) throws {
    let file = try MappedFile(pages: Self.pages, closesDescriptor: isClosed)
    file.store(1, into: 0..<Self.pages)
    let source = kind.source(file.path)
    let validator = try #require(try source.info(Cancellation()).validator)
    let reader = try BlobSlice(source, validator: validator).open(Cancellation())
    var read = try readNext(reader, Self.pages / 2 * Self.pageSize)
    file.store(2, into: 0..<Self.pages)
    let error = failure { () throws(BlobError) in
      while case let more = try readNext(reader, 100_000), !more.isEmpty { read += more }
    }
    #expect(error?.code == .changed, "\(Set(MappedFile.versions(in: read))) came as one file")
    // A later reader does not get the rest of that version either.
    let again = failure { () throws(BlobError) in
      try BlobSlice(source, start: 4096, validator: validator).open(Cancellation())
    }
    #expect(again?.code == .changed)
  }

  /// A process that writes with pauses in which the file seems unchanged. The writer and the reader go from the first
  /// page to the last. If the system delays the writer in the middle of a version, new pages precede old ones, and the
  /// file really has that content. Old pages before new ones never existed in the file.
  @Test func noMixtureIsTakenForAVersion() throws {
    let file = try MappedFile(pages: Self.pages)
    let stop = StopMark()
    let writer = Background {
      var version: UInt64 = 1
      while !stop.isSet {
        // Writing is slower than reading, so that a reader finds a half-written version.
        for start in stride(from: 0, to: Self.pages, by: 16) {
          file.store(version, into: start..<(start + 16))
          usleep(100)
        }
        if version % 2 == 0 { usleep(30_000) }
        version += 1
      }
      return true
    }
    var outcomes: [BlobError.Code?: Int] = [:]
    let deadline = ContinuousClock.now + .milliseconds(600)
    while ContinuousClock.now < deadline {
      var read: [UInt8] = []
      let error = failure { () throws(BlobError) in
        let reader = try BlobSlice(FileSource(file.path)).open(Cancellation())
        while case let more = try readNext(reader, 64 << 10), !more.isEmpty { read += more }
      }
      outcomes[error?.code, default: 0] += 1
      let versions = MappedFile.versions(in: read)
      let isOfOneMoment = zip(versions, versions.dropFirst()).allSatisfy { $0 >= $1 }
      #expect(error != nil || isOfOneMoment, "\(Set(versions).sorted()) came as one file")
      if let error { #expect(error.code == .changed) }
    }
    stop.set()
    _ = writer.value()
    print("a file that is written through a mapping: \(outcomes)")
  }
}
