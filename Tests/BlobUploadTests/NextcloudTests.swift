import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
@testable import BlobUpload
import Blobs
import Testing

@Suite struct NextcloudTests {
  private func uploader(_ peer: NextcloudPeer, retries: Int = 5) async throws -> Uploader {
    let destination = try await UploadDestination.discover(peer.endpoint, named: "dav", over: SocketTransport())
    var uploader = Uploader(
      destination, transport: SocketTransport(), retry: RetryPolicy(retries: retries), partSize: 1)
    uploader.clock = LeapingClock()
    return uploader
  }

  private let film = PatternSource(length: 12 << 20)

  @Test func largeFileGoesInChunksAndIsAssembled() async throws {
    let peer = NextcloudPeer()
    defer { peer.stop() }
    _ = try await uploader(peer).upload(film, as: "Trip/ä.mov")
    #expect(peer.contents(of: "Trip/ä.mov") == film.bytes(count: 12 << 20))
    let puts = peer.requests.filter { $0.hasPrefix("PUT") }
    #expect(
      puts.map { $0.suffix(6) } == ["/00001", "/00002", "/00003"], "parts of 5 MiB, however small they are wanted")
    #expect(peer.requests.suffix(2).first?.hasSuffix("/.file") == true && peer.unfinished() == 0)
    _ = try await uploader(peer).upload(PatternSource(length: 1000), as: "small")
    #expect(peer.requests.filter { $0.contains("/uploads/") && $0.hasPrefix("MKCOL") }.count == 1)
  }

  @Test func lockedWhileItAssemblesIsWaitedFor() async throws {
    let locks = Monitor(3)
    let peer = NextcloudPeer { request in
      guard request.method == "MOVE" else { return nil }
      return locks.update { left in
        left -= 1
        return left >= 0 ? HTTPPeer.Reply(423) : nil
      }
    }
    defer { peer.stop() }
    _ = try await uploader(peer).upload(film, as: "a")
    #expect(peer.names() == ["a"] && peer.requests.filter { $0.hasPrefix("PUT") }.count == 3)
  }

  /// The proxy in front of the server times out, and the server continues.
  @Test func assemblyThatOutlastsTheProxyIsFoundOut() async throws {
    let moves = Monitor(0)
    let peer = NextcloudPeer()
    defer { peer.stop() }
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.method == "MOVE" else { return .none }
      return moves.update { moves in
        moves += 1
        return moves == 1 ? .loseAnswer : .none
      }
    }
    var uploader = try await uploader(peer)
    uploader.transport = transport
    _ = try await uploader.upload(film, as: "a")
    #expect(peer.contents(of: "a") == film.bytes(count: 12 << 20))
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 3, "it is compared, not sent again")
  }

  @Test(arguments: [1000, 12 << 20] as [Int64])
  func fileIntoAFolderThatIsMissingMakesItFirst(_ size: Int64) async throws {
    let peer = NextcloudPeer()
    defer { peer.stop() }
    let endpoint = try #require(peer.endpoint.resolve("2026/May/"))
    let destination = try await UploadDestination.discover(endpoint, named: "dav", over: SocketTransport())
    var uploader = Uploader(destination, transport: SocketTransport(), retry: RetryPolicy(retries: 2))
    uploader.clock = LeapingClock()
    _ = try await uploader.upload(PatternSource(length: size), as: "a.mov")
    #expect(peer.names() == ["2026/May/a.mov"] && peer.unfinished() == 0)
    #expect(peer.requests.filter { $0.hasPrefix("MKCOL") && $0.contains("/uploads/") }.count <= 1, "\(peer.requests)")
  }

  @Test(arguments: [1000, 12 << 20] as [Int64])
  func nameThatItForbidsLeavesNothingBehind(_ size: Int64) async throws {
    let peer = NextcloudPeer()
    defer { peer.stop() }
    for (name, reason) in [("tab\there.mov", "InvalidPath"), ("a.filepart", "\".filepart\" is a forbidden file type.")]
    {
      let error = await #expect(throws: UploadError.self) {
        _ = try await uploader(peer).upload(PatternSource(length: size), as: BytePath(name))
      }
      #expect(error?.side == .file && error?.message.contains(reason) == true, "\(error as Any)")
    }
    #expect(peer.names() == [] && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// Sends the film to a server that lists wrong chunk sizes, as given by `listed`. `fault` is the fault of each PUT,
  /// counted from 1. Returns the requests.
  private func send(
    listed: @escaping @Sendable () -> [String]?, _ fault: @escaping @Sendable (Int) -> FaultyTransport.Fault
  ) async throws -> [String] {
    let (folder, puts) = (Monitor(""), Monitor(0))
    let peer = NextcloudPeer { request in
      if request.method == "MKCOL", request.path.contains("/uploads/") { folder.update { $0 = request.path } }
      guard request.method == "PROPFIND", let sizes = listed() else { return nil }
      let entries = sizes.enumerated().map { number, size in
        "<response><href>\(folder.update { $0 })0000\(number + 1)</href><getcontentlength>\(size)</getcontentlength></response>"
      }
      return .init(207, [:], Array("<multistatus>\(entries.joined())</multistatus>".utf8))
    }
    defer { peer.stop() }
    var uploader = try await uploader(peer, retries: 2)
    uploader.transport = FaultyTransport(SocketTransport()) { _, request in
      if request.method != "PUT" { return .none }
      return fault(
        puts.update { puts in
          puts += 1
          return puts
        })
    }
    _ = try await uploader.upload(film, as: "a")
    #expect(peer.contents(of: "a") == film.bytes(count: 12 << 20) && peer.unfinished() == 0)
    return peer.requests
  }

  @Test(arguments: ["\(Int64.max)", "999999999999999999999999"])
  func chunkSizesThatAddUpToTooMuchAreRefused(_ size: String) async throws {
    _ = try await send(listed: { [size, size, size] }) { $0 == 1 ? .loseAnswer : .none }
  }

  /// The server lists its two chunks with other sizes than those that were sent, but with the same sum.
  @Test func aChunkOfAnotherSizeIsSentAgain() async throws {
    let sizes = Monitor<[String]?>(["\((5 << 20) - 1)", "\((5 << 20) + 1)"])
    let requests = try await send(listed: { sizes.update { $0.take() } }) { $0 == 3 ? .before(.broken) : .none }
    let sent = requests.filter { $0.hasPrefix("PUT") }.map { $0.suffix(6) }
    #expect(sent == ["/00001", "/00002", "/00001", "/00002", "/00003"])
  }

  @Test func sizesOfChunksAreKeptInFewWords() throws {
    var sizes = ChunkSizes()
    #expect(sizes.text == "0" && ChunkSizes("0")?.all == [])
    for size in [64, 64, 64, 5, 64] as [Int64] { sizes.append(size) }
    #expect(sizes.text == "64x3,5,64" && sizes.bytes == 261)
    #expect(ChunkSizes(sizes.text)?.all == [64, 64, 64, 5, 64])
    #expect(["x", "5x0", "1x10001", "-1", "9223372036854775807,1"].allSatisfy { ChunkSizes($0) == nil })
  }

  @Test(arguments: ["9223372036854775807,1", "-1", "5x10001", "x", "101"])
  func chunksThatTheJournalCannotHaveAreRefused(_ count: String) {
    let place = "http://h/remote.php/dav/files/me/a"
    let state = ["url": place, "target": place, "root": place, "length": "100", "chunks": count]
    let error = #expect(throws: UploadError.self) { _ = try NextcloudChunks(UploadSession(state: state)) }
    #expect(error?.recovery == .restart)
  }

  @Test func theErrorSaysThatTheQuotaIsUsedUp() async throws {
    let peer = NextcloudPeer { $0.method == "PUT" ? .init(507) : nil }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(film, as: "a")
    }
    #expect(error?.recovery == .giveUp && error?.message.contains("no room") == true)
  }

  @Test func listingsAreReadHoweverTheyAreWritten() {
    let text = """
      <?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>http://h/u/1/</D:href></D:response>
      <D:response xmlns:x="y"><D:href>
      /u/1/00001 </D:href><D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength></D:prop></D:propstat></D:response>
      <response><href>http://h/u/1/00002</href><getcontentlength>-1</getcontentlength></response>
      <response><href>/u/1/00003</href><getcontentlength>9</getcontentlength></response></D:multistatus>
      """
    #expect(DavListing.sizes(in: Array(text.utf8)) == ["/u/1/00001": 7, "/u/1/00003": 9])
    #expect(DavListing.sizes(in: Array("<<a:href>/x".utf8)).isEmpty && DavListing.sizes(in: []).isEmpty)
  }
}
