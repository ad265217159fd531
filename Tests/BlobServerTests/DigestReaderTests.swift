import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// Tests for `Want-Repr-Digest` on published files, which the server must read to compute the digest.
struct DigestReaderTests {
  private static let want = [("Want-Repr-Digest", "sha-512=10")]
  /// Reading this many bytes takes minutes; the file is sparse and takes no space.
  private static let huge: Int64 = 200 << 30

  private func ask(_ server: TestServer, _ path: String) throws -> RawHTTPClient {
    let client = try server.client()
    try client.head("HEAD", path, Self.want)
    return client
  }

  @Test func questionsWhoseClientsHaveGoneAreGivenUp() throws {
    let server = try TestServer()
    for name in ["big", "other"] as [BytePath] {
      server.folder.write(name, [1])
      #expect(server.folder.extend(name, to: Self.huge))
    }
    server.folder.write("small", pattern(1000))
    do {
      var clients: [RawHTTPClient] = []
      for _ in 0..<10 { clients += [try ask(server, "/big"), try ask(server, "/other")] }
      #expect(try eventually { server.folder.isOpen("big") && server.folder.isOpen("other") })
    }
    #expect(try ask(server, "/small").answer(hasBody: false)["Repr-Digest"] != nil)
    #expect(try eventually { !server.folder.isOpen("big") && !server.folder.isOpen("other") })
  }

  @Test func shortFilesDoNotWaitForLongOnes() throws {
    let server = try TestServer()
    server.folder.write("small", pattern(1000))
    var clients: [RawHTTPClient] = []
    for number in 0..<6 {
      let name = BytePath("big\(number)")
      server.folder.write(name, [1])
      #expect(server.folder.extend(name, to: Self.huge))
      clients.append(try ask(server, "/big\(number)"))
    }
    let answer = try ask(server, "/small").answer(hasBody: false)
    #expect(answer["Repr-Digest"] == DigestField.text([.sha512: Digest.value(of: pattern(1000), .sha512)]))
    withExtendedLifetime(clients) {}
  }

  /// CPU time shows how many times the file was read.
  @Test func equalQuestionsAreAnsweredByOneReading() throws {
    let server = try TestServer()
    for name in ["one", "many"] as [BytePath] {
      server.folder.write(name, [1])
      #expect(server.folder.extend(name, to: 200 << 20))
    }
    let start = clock()
    let digest = try #require(try ask(server, "/one").answer(hasBody: false)["Repr-Digest"])
    let once = clock() - start
    let clients = try (0..<12).map { _ in try ask(server, "/many") }
    for client in clients { #expect(try client.answer(hasBody: false)["Repr-Digest"] == digest) }
    #expect(clock() - start < 5 * once)
  }

  /// The client that asked first disconnects, and reading continues for the other one.
  @Test func oneClientThatStaysIsAnswered() throws {
    let server = try TestServer()
    server.folder.write("x", [1])
    #expect(server.folder.extend("x", to: 200 << 20))
    var first: RawHTTPClient? = try ask(server, "/x")
    let second = try ask(server, "/x")
    withExtendedLifetime(first) {}
    first = nil
    let answer = try second.answer(hasBody: false)
    #expect(answer.status == 200)
    #expect(answer["Repr-Digest"] != nil)
  }

  /// A client may shut down its sending side once it has sent its last request.
  @Test func aClientThatSendsNoMoreIsAnswered() throws {
    let server = try TestServer()
    server.folder.write("x", [1])
    #expect(server.folder.extend("x", to: 100 << 20))
    let client = try ask(server, "/x")
    client.finishSending()
    let answer = try client.answer(hasBody: false)
    #expect(answer.status == 200)
    #expect(answer["Repr-Digest"] != nil)
  }
}
