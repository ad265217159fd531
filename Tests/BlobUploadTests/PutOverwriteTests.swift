import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Testing

@testable import BlobUpload

/// Another client makes or deletes the file that a PUT may replace, right before the PUT arrives.
@Suite struct PutOverwriteTests {
  private let length: Int64 = 300 << 10

  /// Sends a file while `interfere` is called before each PUT, with its number from 1. Returns the number of PUTs.
  private func upload(to peer: ServedFolder, _ interfere: @escaping @Sendable (Int) -> Void) async throws -> Int {
    let count = Monitor(0)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      if request.method == "PUT" {
        interfere(
          count.update { count in
            count += 1
            return count
          })
      }
      return .none
    }
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    var uploader = Uploader(put, transport: transport, retry: RetryPolicy(retries: 0))
    uploader.clock = LeapingClock()
    _ = try await uploader.upload(PatternSource(length: length), as: "a", overwrite: true)
    return count.update { $0 }
  }

  @Test func fileThatAnotherClientMakesIsReplaced() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let path = peer.folder.appending("a").description
    let count = try await upload(to: peer) { number in
      if number == 1 { _ = FileManager.default.createFile(atPath: path, contents: Data([1, 2, 3])) }
    }
    #expect(peer.contents(of: "a") == PatternSource(length: length).bytes(count: Int(length)))
    #expect(count == 2)
  }

  /// The file is deleted before the first PUT, which requires it, and made again before the second one.
  @Test func fileThatComesAndGoesIsReplaced() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let path = peer.folder.appending("a").description
    _ = FileManager.default.createFile(atPath: path, contents: Data([1, 2, 3]))
    let count = try await upload(to: peer) { number in
      if number == 1 { unlink(path) }
      if number == 2 { _ = FileManager.default.createFile(atPath: path, contents: Data([1, 2, 3])) }
    }
    #expect(peer.contents(of: "a") == PatternSource(length: length).bytes(count: Int(length)))
    #expect(count == 3)
  }

  /// A server that answers 409 for another reason gets the file once.
  @Test func otherRefusalIsFinal() async throws {
    let peer = HTTPPeer { $0.method == "PUT" ? .init(409) : .init(404) }
    defer { peer.stop() }
    let put = UploadDestination(endpoint: peer.url, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    await #expect(throws: UploadError.self) {
      _ = try await Uploader(put, transport: SocketTransport()).upload(
        PatternSource(length: length), as: "a", overwrite: true)
    }
    #expect(peer.requests.count { $0.hasPrefix("PUT") } == 1, "\(peer.requests)")
  }
}
