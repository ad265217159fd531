#if os(Linux)
  import Blobs
  import Platform
  import TestSupport
  import Testing

  @testable import BlobServer

  /// Another program, such as a file server, serves the same folder and holds a lease on a file.
  struct LeasedFileTests {
    @Test(arguments: ["GET", "PUT"]) func theClientIsAskedToComeAgain(_ method: String) throws {
      let server = try TestServer()
      server.folder.write("a", pattern(1000))
      let lease = try #require(FileLease(server.folder.path.appending("a")))
      let body = method == "PUT" ? pattern(1000) : nil
      let early = try server.ask(method, "/a", body: body)
      #expect(early.status == 503 && early["Retry-After"] == "1", "\(early.status) \(early.text)")
      #expect(early.text.contains("another program holds a lease"), "\(early.text)")
      #expect(lease.isWanted)
      lease.giveUp()
      #expect(try server.ask(method, "/a", body: body).status / 100 == 2)
    }

    /// Only opening a file waits for a lease. Other calls report EAGAIN for other reasons.
    @Test func otherFailuresAreNotAttributedToALease() {
      errno = EAGAIN
      let error = failed("sync upload", "1")
      #expect(error.status == 503 && error.headers["Retry-After"] == "1")
      #expect(!error.message.contains("lease"), "\(error.message)")
    }
  }
#endif
