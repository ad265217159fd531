#if os(Linux)
  import Blobs
  import TestSupport
  import Testing

  @testable import fullbore

  @Suite struct WritersTests {
    /// The holder of a write lease may have bytes that it has not written yet.
    @Test func theHolderOfAWriteLeaseIsAWriter() throws {
      let scratch = Scratch()
      let path = scratch.file("film.mov")
      let lease = try #require(FileLease(path))
      #expect(FileUsers(of: path, for: .writing) == .some)
      lease.giveUp()
      // The lease is given up, and its holder still has the file open for writing.
      #expect(FileUsers(of: path, for: .writing) == .some)
    }
  }
#endif
