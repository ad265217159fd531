import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// A place that answers every URL with the same page, for example because the path is wrong.
@Suite struct EveryNameTests {
  private static let page = [UInt8]("<html>Hello</html>".utf8)

  private func push(_ uploadProtocol: any UploadProtocol, to peer: HTTPPeer, _ names: [String]) async -> (
    error: UploadError?, refusals: [UploadError]
  ) {
    guard let desk = try? await Desk() else { return (nil, []) }
    var queue = desk.queue(SocketTransport())
    queue.uploader.destination = UploadDestination(
      endpoint: peer.url, uploadProtocol: uploadProtocol,
      limits: PartLimits(firstPart: uploadProtocol is WebDAV ? 0 : .max))
    queue.jobs = 1
    let seen = Ends()
    do {
      try await desk.run(queue, names, seen)
      return (nil, seen.errors)
    } catch {
      return (error, seen.errors)
    }
  }

  /// Nothing has that name, so to overwrite it is no advice.
  @Test(arguments: [false, true], [true, false])
  func aPageForEveryNameIsNoFileOfThatName(_ isDAV: Bool, _ answersHead: Bool) async {
    let peer = HTTPPeer { request in
      switch request.method {
      case "GET": .init(200, [:], Self.page)
      case "HEAD": answersHead ? .init(200, [:], Self.page) : .init(405)
      default: .init(201)
      }
    }
    defer { peer.stop() }
    let (error, refusals) = await push(
      isDAV ? WebDAV(wholeUpTo: 0) : NameInUseTests.asking(), to: peer, ["a.jpg", "b.jpg", "c.jpg"])
    #expect(error?.side == .destination && error?.status != 409, "\(error as Any)")
    #expect(error?.message.contains("answer 200 to everything") == true, "\(error as Any)")
    #expect(!refusals.contains { $0.status == 409 }, "\(refusals)")
    #expect(!peer.requests.contains { $0.hasPrefix("PUT") }, "\(peer.requests)")
  }

  /// A name that cannot exist is asked for once in each folder.
  @Test func aServerWithOtherFilesIsAskedOnlyOnceMore() async {
    let peer = HTTPPeer { request in
      request.path.hasSuffix(".jpg") ? .init(200, [:], Self.page) : .init(404)
    }
    defer { peer.stop() }
    let (error, refusals) = await push(NameInUseTests.asking(), to: peer, ["a.jpg", "b.jpg", "c.jpg"])
    #expect(error == nil && refusals.map(\.status) == [409, 409, 409], "\(error as Any) \(refusals)")
    #expect(peer.requests.filter { !$0.hasSuffix(".jpg") && $0.hasPrefix("HEAD") }.count == 1, "\(peer.requests)")
  }
}
