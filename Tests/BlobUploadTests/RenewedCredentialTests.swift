import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// A token is renewed in its file while it is in use.
@Suite struct RenewedCredentialTests {
  private static let length: Int64 = 600_000
  private let threads = BlockingPool("renewed-credentials", threads: 2)

  /// The file, and the server's word on what is in it.
  private final class Token: Transport {
    struct State {
      var taken = "first-token"
      var kept = "first-token"
      var requests = 0
      var reads = 0
    }
    let state = Mutex(State())
    private let transport = SocketTransport(.init(connections: 8, noProgress: .seconds(10), finishing: .seconds(10)))
    private let last: Int

    /// `last`: the request before which the first token expires, counted from 0.
    init(expiringAt last: Int) { self.last = last }

    func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
      let taken = state.withLock { state in
        if state.requests == last { (state.taken, state.kept) = ("second-token", "second-token") }
        state.requests += 1
        return state.taken
      }
      if request.headers["Authorization"] != "Bearer \(taken)" { return .status(401) }
      return try await transport.send(request, body: body, on)
    }

    var credentials: Credentials {
      Credentials(["Authorization": "Bearer first-token"]) { [self] in
        state.withLock { state in
          state.reads += 1
          return ["Authorization": "Bearer \(state.kept)"]
        }
      }
    }
  }

  /// Some servers give out a refresh token that is valid once. If two requests renewed at the same time, both access
  /// tokens would be invalid.
  @Test func requestsThatAreRefusedAtOnceRenewOnce() async {
    let calls = Mutex((now: 0, most: 0, all: 0))
    let credentials = Credentials(["Authorization": "Bearer first-token"]) {
      let number = calls.withLock { calls in
        (calls.now, calls.all) = (calls.now + 1, calls.all + 1)
        calls.most = max(calls.most, calls.now)
        return calls.all
      }
      usleep(50_000)
      calls.withLock { $0.now -= 1 }
      return ["Authorization": "Bearer token-\(number)"]
    }
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<20 { group.addTask { await credentials.areRenewed(since: 0) } }
      for await isRenewed in group { #expect(isRenewed) }
    }
    #expect(calls.withLock { $0.most == 1 && $0.all == 1 } && credentials.version == 1)
  }

  private func uploader(_ fixture: ProtocolFixture, _ peer: any ProtocolPeer, _ token: Token) async throws -> Uploader {
    // What WebDAV learned of another test's server must not change its requests here.
    let uploadProtocol: any UploadProtocol =
      if let dav = fixture.uploadProtocol as? WebDAV { WebDAV(wholeUpTo: dav.wholeUpTo) } else {
        fixture.uploadProtocol
      }
    var destination = try await UploadDestination.discover(
      peer.endpoint, speaking: uploadProtocol, over: SocketTransport())
    destination.uploadProtocol = uploadProtocol
    destination.credentials = token.credentials
    var uploader = Uploader(
      destination, transport: token, retry: RetryPolicy(retries: 5, first: .milliseconds(1)),
      partSize: fixture.partSize)
    uploader.partsAtOnce = fixture.partsAtOnce
    (uploader.splitting.leastLength, uploader.splitting.smallestPart) = (100_000, 60_000)
    return uploader
  }

  /// S3 is signed with keys instead.
  private static let fixtures = ProtocolFixture.all.filter { !$0.name.hasPrefix("s3") }

  @Test(arguments: fixtures, [0, 1, 2, 3])
  func anUploadGoesOnWithTheNewToken(_ fixture: ProtocolFixture, _ last: Int) async throws {
    for length in [1000, Self.length] {
      let peer = try await threads.run { try fixture.makePeer() }
      defer { peer.stop() }
      let token = Token(expiringAt: last)
      let pattern = PatternSource(length: length)
      _ = try await uploader(fixture, peer, token).upload(pattern, as: "a.mov")
      let stored = await threads.run { peer.contents(of: "a.mov") }
      #expect(stored.map { $0 == pattern.bytes(count: Int(length)) } == true)
      #expect(token.state.withLock { $0.reads < 9 && ($0.reads > 0 || $0.requests <= last) })
    }
  }

  @Test(arguments: fixtures) func aTokenThatHasNotChangedEndsTheUpload(_ fixture: ProtocolFixture) async throws {
    let peer = try await threads.run { try fixture.makePeer() }
    defer { peer.stop() }
    let token = Token(expiringAt: .max)
    token.state.withLock { $0.taken = "another-token" }
    let uploader = try await uploader(fixture, peer, token)
    await #expect {
      _ = try await uploader.upload(PatternSource(length: 1000), as: "a.mov")
    } throws: { error in
      let error = error as? UploadError
      return error?.status == 401 && error?.side == .destination && error?.recovery == .giveUp
    }
    // WebDAV sends one more request before the file. No request is sent again.
    #expect(token.state.withLock { $0.requests <= 2 && $0.reads == $0.requests })
  }

  /// What the server has kept of a refused request is not sent a second time, and nothing of a pipe is lost.
  @Test(arguments: 1...4) func aPipeGoesOnWithWhatItHolds(_ last: Int) async throws {
    let seen = Mutex(0)
    let kept = Mutex("first-token")
    let peer = CloudPeer { request in
      if request.method == "PUT" { seen.withLock { $0 += 1 } }
      if seen.withLock({ $0 }) >= last { kept.withLock { $0 = "second-token" } }
      return request.headers["Authorization"] == "Bearer \(kept.withLock { $0 })" ? nil : .init(401)
    }
    defer { peer.stop() }
    let uploadProtocol = CloudStorage(wholeUpTo: 0)
    var destination = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits)
    destination.credentials = Credentials(["Authorization": "Bearer first-token"]) {
      ["Authorization": "Bearer \(kept.withLock { $0 })"]
    }
    var uploader = Uploader(
      destination, transport: SocketTransport(), retry: RetryPolicy(retries: 3, first: .milliseconds(1)))
    uploader.spool.memory = 256 << 10
    let pattern = PatternSource(length: 1_100_000)
    _ = try await uploader.upload(piped(pattern), as: "a.mov")
    #expect(peer.contents(of: "a.mov") == pattern.bytes(count: 1_100_000))
    #expect(seen.withLock { $0 } > last)
  }

  /// One server may have a tree of files for each user.
  @Test func anotherUsersCredentialsAreNotTaken() async {
    let other: HTTPHeaders = ["Authorization": "Basic eW91OnNlY3JldA=="]
    let credentials = Credentials(["Authorization": "Basic bWU6c2VjcmV0"]) { other }
    #expect(await !credentials.areRenewed(since: 0))
    let own = Credentials(["Authorization": "Basic bWU6c2VjcmV0"]) { ["Authorization": "Basic bWU6b3RoZXI="] }
    #expect(await own.areRenewed(since: 0))
    #expect(own.fields["Authorization"] == "Basic bWU6b3RoZXI=")
  }

  @Test func aServerMayRepeatTheOldTokenAndTheNewOne() async throws {
    let token = Token(expiringAt: 0)
    token.state.withLock { $0.kept = "second-token" }
    var destination = UploadDestination(endpoint: host, uploadProtocol: PlainPut(), limits: PartLimits())
    destination.credentials = token.credentials
    let context = UploadContext(destination, over: token)
    #expect(await destination.credentials.areRenewed(since: 0))
    for secret in ["first-token", "second-token"] { #expect(context.secrets().isOne(in: "of \(secret)".utf8)) }
  }
}
