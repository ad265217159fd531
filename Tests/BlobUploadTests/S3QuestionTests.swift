import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests objects that are sent before the query for the bucket has a response.
@Suite struct S3QuestionTests: S3Fixture {
  let transport = Self.connections

  private func send(
    _ names: [String], to peer: S3Peer, _ signer: S3Signer, jobs: Int = 64, overwrite: Bool = false
  ) async throws -> (outcomes: Outcomes, error: UploadError?, left: [JournalEntry]) {
    let destination = try await UploadDestination.s3Expected(
      S3Address(bucket: peer.options.bucket, endpoint: "http://127.0.0.1:\(peer.port)", region: signer.region),
      signer: signer, over: transport)
    let desk = try await Desk()
    var uploader = Uploader(destination, transport: transport, journal: desk.journal)
    uploader.clock = LeapingClock()
    var queue = UploadQueue(uploader, journal: desk.journal, destinationID: 0)
    queue.jobs = jobs
    let outcomes = Outcomes()
    var error: UploadError?
    do throws(UploadError) { try await desk.run(queue, names, outcomes, overwrite: overwrite) } catch let thrown {
      error = thrown
    }
    return (outcomes, error, try await desk.journal.unfinished())
  }

  private static let names = (0..<20).map { "photo-\($0)" }

  private func signer(_ peer: S3Peer, region: String = "us-east-1") -> S3Signer {
    S3Signer(peer.options.credentials, region: region)
  }

  /// A server that responds to the query only after it received a request for an object.
  private func peerThatAnswersLate(_ change: (inout S3Peer.Options) -> Void = { _ in }) -> S3Peer {
    let isThere = Monitor(false)
    return peer { options in
      change(&options)
      options.refuse = { _, request in
        if request.method != "GET" { isThere.update { $0 = true } }
        if request.method == "GET" { _ = isThere.wait { $0 ? true : nil } }
        return nil
      }
    }
  }

  @Test func objectsDoNotWaitForTheAnswer() async throws {
    let peer = peerThatAnswersLate()
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer(peer))
    #expect(error == nil && outcomes.sent == 20 && peer.objects.count == 20)
  }

  @Test func refusedCredentialsAreReportedOnce() async throws {
    let peer = peerThatAnswersLate()
    let wrong = S3Credentials(accessKey: "AKIANOBODY", secretKey: "wrong-secret")
    let (outcomes, error, left) = try await send(Self.names, to: peer, S3Signer(wrong, region: "us-east-1"))
    guard let all = error else { return #expect(Bool(false), "nothing was thrown") }
    #expect(all.side == .destination && all.recovery == .giveUp, "\(all)")
    #expect(all.message.contains("GET") && all.message.contains("InvalidAccessKeyId"), "\(all)")
    #expect(peer.objects.isEmpty && outcomes.sent == 0)
    // Uploads that had started were cancelled, and have no errors of their own.
    let errors = Self.names.compactMap { outcomes.error($0) }
    #expect(!errors.isEmpty && errors.allSatisfy { $0.side == .cancelled }, "\(errors)")
    #expect(peer.requests.contains { $0.hasPrefix("HEAD") })
    // A later run with the right credentials sends the claimed items.
    #expect(!left.isEmpty && left.allSatisfy { $0.state == .intent && $0.owner == nil }, "\(left)")
  }

  /// The server is not an S3 server, but accepts objects: none of them counts before this is known. Without permission
  /// to overwrite, the queries for their names show it.
  @Test func noObjectCountsBeforeTheBucketHasAnswered() async throws {
    let puts = Monitor(0)
    let peer = peer { options in
      options.refuse = { _, request in
        if request.method == "PUT" { puts.update { $0 += 1 } }
        if request.method != "GET" { return nil }
        _ = puts.wait { $0 >= 8 ? true : nil }
        return (403, "InvalidAccessKeyId")
      }
    }
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer(peer), overwrite: true)
    #expect(error?.message.contains("InvalidAccessKeyId") == true, "\(String(describing: error))")
    #expect(outcomes.sent == 0 && !peer.objects.isEmpty)
  }

  @Test func requestsSignedForAnotherRegionAreSentAgain() async throws {
    let peer = peerThatAnswersLate { $0.region = "eu-west-1" }
    let signer = signer(peer)
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer)
    #expect(error == nil && outcomes.sent == 20 && peer.objects.count == 20, "\(String(describing: error))")
    #expect(signer.region == "eu-west-1")
  }

  @Test func requestsSignedWithAWrongClockAreSentAgain() async throws {
    let peer = peerThatAnswersLate { $0.clockAhead = 3600 }
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer(peer))
    #expect(error == nil && outcomes.sent == 20 && peer.objects.count == 20, "\(String(describing: error))")
  }

  /// One request renews the token, and all others use it.
  @Test func aTokenThatExpiresIsRenewedForAll() async throws {
    let (signer, wanted) = expired()
    let peer = peerThatAnswersLate(wanted)
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer)
    #expect(error == nil && outcomes.sent == 20 && peer.objects.count == 20, "\(String(describing: error))")
  }

  /// A server that is too busy to list the bucket, but accepts objects.
  @Test func a503ToTheBucketQueryIsNoRefusal() async throws {
    let isThere = Monitor(false)
    let peer = peer { options in
      options.refuse = { _, request in
        if request.method != "GET" { isThere.update { $0 = true } }
        guard request.method == "GET" else { return nil }
        _ = isThere.wait { $0 ? true : nil }
        return (503, "SlowDown")
      }
    }
    let (outcomes, error, left) = try await send(Self.names, to: peer, signer(peer))
    #expect(error == nil && outcomes.sent == 20 && peer.objects.count == 20, "\(String(describing: error))")
    #expect(left.isEmpty)
  }

  @Test func withOneConnectionItIsAskedFirst() async throws {
    let peer = peer()
    let (outcomes, error, _) = try await send(Self.names, to: peer, signer(peer), jobs: 1)
    #expect(error == nil && outcomes.sent == 20, "\(String(describing: error))")
    #expect(peer.requests.first?.hasPrefix("GET ") == true, "\(peer.requests.prefix(3))")
  }

  @Test func anUnreachableServerIsReportedOnce() async throws {
    let peer = peer()
    peer.stop()
    let (outcomes, error, left) = try await send(Self.names, to: peer, signer(peer))
    #expect(error?.side == .destination && outcomes.sent == 0, "\(String(describing: error))")
    #expect(error?.message.hasPrefix("GET ") == true, "\(String(describing: error))")
    #expect(!left.isEmpty && left.allSatisfy { $0.state == .intent && $0.owner == nil }, "\(left)")
    // The error is reported once, not for each item.
    #expect(Self.names.compactMap { outcomes.error($0) }.allSatisfy { $0.side == .cancelled })
  }
}
