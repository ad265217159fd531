#if os(Linux)
  import Blobs
  import TestSupport
  import Testing

  /// Another program, such as a file server, serves the same folder and holds a lease on a file.
  struct LeasedFileTests {
    @Test(arguments: ["GET", "PUT"]) func theClientIsAskedToComeAgain(_ method: String) throws {
      let server = try TestServer()
      server.folder.write("a", pattern(1000))
      let lease = try #require(FileLease(server.folder.path.appending("a")))
      let body = method == "PUT" ? pattern(1000) : nil
      let early = try server.ask(method, "/a", body: body)
      #expect(early.status == 503 && early["Retry-After"] == "1", "\(early.status) \(early.text)")
      #expect(lease.isWanted)
      lease.giveUp()
      #expect(try server.ask(method, "/a", body: body).status / 100 == 2)
    }
  }
#endif
