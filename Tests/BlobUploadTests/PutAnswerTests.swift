import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// What is made of a 200 to a PUT, which some servers say to everything.
@Suite struct PutAnswerTests {
  private static let page = HTTPResponse.status(200, ["Content-Length": "670"], text: "welcome")

  /// A server that answers a PUT with `put`, and HEAD and GET as given.
  private func server(
    put: Int = 200, head: HTTPResponse, get: HTTPResponse = .status(405)
  ) -> Script {
    Script { _, request throws(TransportError) in
      switch request.method {
      case "PUT": .status(put)
      case "HEAD": head
      default: get
      }
    }
  }

  @Test(arguments: [
    (HTTPResponse.status(404), HTTPResponse.status(404)), (.status(404), .status(405)), (page, page),
    (.status(405), .status(404)), (.status(405), .status(206, ["Content-Range": "bytes 0-0/670"])),
    (.status(200, ["Content-Length": "0"]), .status(200, ["Content-Length": "0"])),
  ])
  func aServerThatHasNothingThereIsNotBelieved(_ head: HTTPResponse, _ get: HTTPResponse) async {
    let error = await uploader(PlainPut(), server(head: head, get: get)).failure()
    #expect(error?.side == .destination)
    #expect(error?.message.contains("answered 200, but the server has") == true, "\(error as Any)")
  }

  @Test(arguments: [
    (HTTPResponse.status(200, ["Content-Length": "1000"]), HTTPResponse.status(405)),
    (.status(405), .status(206, ["Content-Range": "bytes 0-0/1000"])), (.status(405), .status(405)),
    (.status(501), .status(501)), (.status(403), .status(403)), (.status(401), .status(401)),
    (.status(200, ["Content-Length": "0"]), .status(206, ["Content-Range": "bytes 0-0/1000"])),
    (.status(302, ["Location": "http://elsewhere.example/a"]), .status(404)),
  ])
  func aServerThatHasItOrLetsNobodyLookIsBelieved(_ head: HTTPResponse, _ get: HTTPResponse) async {
    #expect(await uploader(PlainPut(), server(head: head, get: get)).failure() == nil)
  }

  /// Many files at once, which go the quick way: one of them asks.
  @Test(arguments: [200, 201, 204]) func oneFileIsAskedForAndOnlyAfterA200(_ status: Int) async throws {
    let desk = try await Desk()
    let script = server(put: status, head: .status(200, ["Content-Length": "1000"]))
    let names = (0..<200).map { "\($0)" }
    #expect(try await desk.run(desk.queue(Starter(script)), names).sent == 200)
    #expect(script.methods.count { $0 == "HEAD" } == (status == 200 ? 1 : 0))
    #expect(script.methods.count { $0 == "PUT" } == 200, "none goes twice")
  }

  @Test func aPageForEverythingEndsThePush() async throws {
    let desk = try await Desk()
    let script = server(head: Self.page, get: Self.page)
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(desk.queue(Starter(script)), (0..<200).map { "\($0)" })
    }
    #expect(error?.side == .destination)
    #expect(try await desk.journal.entries(.done, limit: -1).isEmpty)
  }

  /// An empty page looks like an empty file.
  @Test func anEmptyFileProvesNothing() async throws {
    let desk = try await Desk()
    let script = server(head: .status(200, ["Content-Length": "0"]), get: .status(200, ["Content-Length": "0"]))
    var queue = desk.queue(script)
    queue.jobs = 1
    let error = await #expect(throws: UploadError.self) {
      try await desk.run(queue, ["empty", "full"], lengths: [0, 1000])
    }
    #expect(error?.message.contains("has 0 bytes there, and was sent 1000") == true, "\(error as Any)")
  }

  @Test func aPlainServerThatGetsAResumableUploadIsAskedToo() async {
    let limits = PartLimits(firstPart: .max)
    let nothing = Script(.status(200), Self.page, Self.page)
    #expect(await uploader(IETFResumable(), nothing, limits: limits).failure()?.side == .destination)
    let there = Script(.status(200), .status(200, ["Content-Length": "1000"]))
    #expect(await uploader(IETFResumable(), there, limits: limits).failure() == nil)
  }
}
