import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// An object that may be replaced is named by the request that replaces it.
@Suite struct S3ReplacementTests: S3Fixture {
  let transport = Self.connections

  private static func others(_ number: Int) -> S3PeerObject { S3PeerObject(bytes: [1, 2, 3], tag: "\"\(number)\"") }

  /// Whether the request makes the object, of one part or of several.
  private static func isLast(_ request: S3PeerRequest) -> Bool {
    request.method == "PUT" && request.query("partNumber") == nil
      || request.method == "POST" && request.query("uploads") == nil
  }

  /// A server on which another client changes the object before each request that makes it.
  private func upload(
    _ length: Int64, isThere: Bool, _ change: @escaping @Sendable (Int, inout S3PeerState) -> Void
  ) async throws -> (peer: S3Peer, error: UploadError?) {
    let made = Monitor<S3Peer?>(nil)
    let count = Atomic(0)
    let peer = peer { options in
      options.refuse = { _, request in
        guard Self.isLast(request) else { return nil }
        let number = count.add(1, ordering: .relaxed).newValue
        made.update { $0 }?.change { change(number, &$0) }
        return nil
      }
    }
    made.update { $0 = peer }
    defer { made.update { $0 = nil } }
    if isThere { peer.change { $0.objects["a"] = Self.others(0) } }
    let uploader = try await uploader(peer, retries: 0)
    do {
      _ = try await uploader.upload(PatternSource(length: length, seed: 7), as: "a", overwrite: true)
      return (peer, nil)
    } catch {
      return (peer, error)
    }
  }

  @Test(arguments: [1000, 17 << 20] as [Int64], [false, true])
  func anObjectThatHasChangedIsReplacedAtOnce(_ length: Int64, _ isThere: Bool) async throws {
    let (peer, error) = try await upload(length, isThere: isThere) { number, state in
      if number <= 2 { state.objects["a"] = Self.others(number) }
    }
    #expect(error == nil, "\(error as Any)")
    #expect(peer.objects["a"]?.bytes == PatternSource(length: length, seed: 7).bytes(count: Int(length)))
    #expect(peer.uploads.isEmpty)
    // The parts are not sent again.
    let parts = peer.requests.count { $0.hasPrefix("PUT") && $0.contains("partNumber") }
    #expect(parts == (length > 1000 ? 4 : 0), "\(peer.requests)")
  }

  @Test(arguments: [1000, 17 << 20] as [Int64]) func anObjectThatIsGoneIsMadeAnew(_ length: Int64) async throws {
    let (peer, error) = try await upload(length, isThere: true) { number, state in
      if number == 1 { state.objects["a"] = nil }
    }
    #expect(error == nil, "\(error as Any)")
    #expect(peer.objects["a"]?.bytes.count == Int(length) && peer.uploads.isEmpty, "\(peer.requests)")
  }

  @Test(arguments: [1000, 17 << 20] as [Int64]) func anObjectThatChangesEachTimeIsGivenUp(_ length: Int64) async throws
  {
    let (peer, error) = try await upload(length, isThere: true) { number, state in
      state.objects["a"] = Self.others(number)
    }
    #expect(error?.message.contains("has changed each time") == true, "\(error as Any)")
    #expect(peer.objects["a"]?.tag == "\"4\"")
  }

  /// The key may not look at objects, so that whatever is there is replaced.
  @Test func aKeyThatMayOnlyWriteReplacesWhatIsThere() async throws {
    let peer = peer { $0.refuse = { _, request in request.method == "HEAD" ? (403, "AccessDenied") : nil } }
    peer.change { $0.objects["a"] = Self.others(0) }
    _ = try await uploader(peer).upload(PatternSource(length: 1000, seed: 7), as: "a", overwrite: true)
    #expect(peer.objects["a"]?.bytes.count == 1000)
  }
}
