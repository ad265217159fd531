import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Servers that forget their uploads and give the URL of one to another file.
@Suite struct ForgottenUploadTests {
  /// The upload of `a.mov` was interrupted at 400 bytes. The server then has 600 bytes of another file under its URL.
  @Test(arguments: ["filename YjIubW92,relativePath eC9iMi5tb3Y=", "filename YjIubW92", "relativePath YjIubW92, note"])
  func anotherFilesUploadIsNotContinued(_ metadata: String) async {
    let script = Script { number, request throws(TransportError) in
      switch (request.method, number) {
      case ("POST", 0): return .created
      case ("POST", _): return .status(201, ["Location": "/up/2"])
      case ("PATCH", 1): throw TransportError(.broken, "the connection broke")
      case ("HEAD", _):
        return .status(200, ["Upload-Offset": "600", "Upload-Length": "1000", "Upload-Metadata": metadata])
      default: return .at(1000)
      }
    }
    #expect(await uploader(Tus(), script).failure() == nil)
    let patches = script.requests.filter { $0.method == "PATCH" }
    #expect(patches.map { $0.headers["Upload-Offset"] } == ["0", "0"])
    #expect(patches.last?.url.path == "/up/2")
  }

  /// Some servers drop the padding of base64, or tell only some of the fields.
  @Test(arguments: ["filename YS5tb3Y", "note eA==", "relativePath YS5tb3Y=,filename eA==", ""])
  func theSameFilesUploadIsContinued(_ metadata: String) async {
    let script = Script { number, request throws(TransportError) in
      switch (request.method, number) {
      case ("POST", _): return .created
      case ("PATCH", 1): throw TransportError(.broken, "the connection broke")
      case ("HEAD", _):
        return .status(200, ["Upload-Offset": "600", "Upload-Length": "1000", "Upload-Metadata": metadata])
      default: return .at(1000)
      }
    }
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH"])
  }

  /// A server numbers its uploads, and forgets them several times during a push of files of equal length.
  @Test(arguments: ["tus", "resumable"])
  func aServerThatNumbersItsUploadsAnewGetsEachFileWhole(_ name: String) async throws {
    let server = ForgetfulServer()
    let peer = HTTPPeer { server.answer($0) }
    defer { peer.stop() }
    let uploader = Uploader(
      UploadDestination(
        endpoint: peer.url, uploadProtocol: name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable(wholeUpTo: 0),
        limits: PartLimits(usual: ForgetfulServer.part)),
      transport: SocketTransport(), retry: RetryPolicy(retries: 20))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          let source = PatternSource(length: 10 * ForgetfulServer.part, seed: UInt64(number))
          _ = try await uploader.upload(source, as: BytePath("\(number).raw"))
        }
      }
      try await group.waitForAll()
    }
    for number in 0..<8 {
      let bytes = PatternSource(length: 10 * ForgetfulServer.part, seed: UInt64(number))
        .bytes(count: 10 * Int(ForgetfulServer.part))
      #expect(server.published("\(number).raw") == bytes, "\(number).raw")
    }
  }
}

/// A server for tus and resumable uploads with uploads that are numbered from 0 again each time it has forgotten all of them. It publishes a file
/// under the name that it was created with.
private final class ForgetfulServer: Sendable {
  static let part: Int64 = 10_000

  private struct State {
    var uploads: [(name: String, length: Int64, bytes: [UInt8])] = []
    var published: [String: [UInt8]] = [:]
    var parts = 0
  }
  private let state = Mutex(State())

  func published(_ name: String) -> [UInt8]? { state.withLock { $0.published[name] } }

  func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply? {
    state.withLock { state in
      if request.method == "POST" {
        let metadata = request.headers["Upload-Metadata"]?.split(separator: ",").first?.split(separator: " ").last
        let name = metadata.map { String(decoding: Data(base64Encoded: String($0)) ?? Data(), as: UTF8.self) }
        let target = String(request.path.split(separator: "/").last ?? "")
        state.uploads.append((name ?? target, request.headers.bytes("Upload-Length") ?? 0, []))
        return .init(201, ["Location": "/up/\(state.uploads.count - 1)", "Upload-Complete": "?0"])
      }
      guard let number = request.path.split(separator: "/").last.flatMap({ Int($0) }), number < state.uploads.count
      else { return .init(404) }
      let upload = state.uploads[number]
      if request.method == "DELETE" { return .init(204) }
      if request.method == "HEAD" {
        return .init(
          200,
          [
            "Upload-Offset": String(upload.bytes.count), "Upload-Length": String(upload.length),
            "Upload-Complete": "?0", "Upload-Metadata": "filename \(base64(upload.name.utf8))",
          ])
      }
      guard request.headers.bytes("Upload-Offset") == Int64(upload.bytes.count) else {
        return .init(409, ["Upload-Offset": String(upload.bytes.count), "Upload-Complete": "?0"])
      }
      state.uploads[number].bytes += request.body
      let bytes = state.uploads[number].bytes
      if bytes.count == upload.length { state.published[upload.name] = bytes }
      state.parts += 1
      if state.parts.isMultiple(of: 19), state.parts < 60 { state.uploads = [] }
      let isWhole = bytes.count == upload.length
      return .init(204, ["Upload-Offset": String(bytes.count), "Upload-Complete": isWhole ? "?1" : "?0"])
    }
  }
}
