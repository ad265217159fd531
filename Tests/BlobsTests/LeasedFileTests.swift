#if os(Linux)
  import BlobTesting
  import Blobs
  import Platform
  import TestSupport
  import Testing

  /// Files on which another program holds a lease: the system asks it to give the lease up, and whoever opens the file
  /// must wait for that.
  struct LeasedFileTests {
    private let bytes = PatternSource(length: 100_000).bytes(count: 100_000)

    @Test(arguments: MappedWriterTests.Kind.allCases) func aFileIsReadOnceItsLeaseIsReleased(
      _ kind: MappedWriterTests.Kind
    ) throws {
      let file = try TemporaryFile(bytes)
      let lease = try #require(FileLease(file.path))
      let holder = lease.giveUp(after: .milliseconds(200))
      let reader = try kind.source(file.path).open(at: 0, Cancellation())
      #expect(try readNext(reader, 200_000) == bytes)
      #expect(holder.value() == true)
    }

    @Test func aFileWithoutASizeIsReadOnceTheLeaseIsGivenUp() throws {
      let file = try TemporaryFile()
      let lease = try #require(FileLease(file.path))
      let holder = lease.giveUp(after: .milliseconds(200))
      #expect(try !UnsizedFileSource.isNeeded(for: file.path))
      #expect(holder.value() == true)
    }

    @Test(arguments: [true, false]) func theWaitEndsWhenItIsCancelled(_ isEmpty: Bool) throws {
      let file = try TemporaryFile(isEmpty ? [] : bytes)
      let lease = try #require(FileLease(file.path))
      let cancel = Cancellation()
      let opening = Background { [source = file.source, path = file.path] in
        failure { () throws(BlobError) in
          if isEmpty {
            _ = try UnsizedFileSource.isNeeded(for: path, cancel)
          } else {
            _ = try source.open(at: 0, cancel)
          }
        }?.code
      }
      for _ in 0..<5000 where !lease.isWanted { usleep(2000) }
      cancel.cancel()
      #expect(opening.value(within: .seconds(20)) == .cancelled)
    }
  }
#endif
