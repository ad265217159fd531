import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Testing

@testable import BlobUpload

/// Uploads with `overwrite` name the file that they replace, and begin again at once if it has changed.
@Suite(.serialized) struct ReplacementTests {
  enum Kind: CaseIterable { case put, tus, ietf }

  private static let whole: Int64 = 3000
  /// Is created empty, and sent in further requests.
  private static let large: Int64 = 6 << 20

  private func uploader(_ kind: Kind, _ endpoint: HTTPURL, _ transport: any Transport) async throws -> Uploader {
    let uploadProtocol: any UploadProtocol =
      switch kind {
      case .put: PlainPut()
      case .tus: Tus()
      case .ietf: IETFResumable()
      }
    var uploader = Uploader(
      try await .discover(endpoint, speaking: uploadProtocol, over: SocketTransport()), transport: transport,
      retry: RetryPolicy(retries: 0))
    uploader.clock = LeapingClock()
    uploader.partsAtOnce = 1
    return uploader
  }

  /// A transport that calls `change` before each request that may publish the file, with its number from 1.
  private func changing(
    _ length: Int64, _ change: @escaping @Sendable (Int) -> Void
  ) -> (transport: FaultyTransport, count: Monitor<Int>) {
    let count = Monitor(0)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      let isLast = length > Self.whole ? request.method == "PATCH" : ["PUT", "POST"].contains(request.method)
      if isLast || request.method == "PUT" {
        change(
          count.update { count in
            count += 1
            return count
          })
      }
      return .none
    }
    return (transport, count)
  }

  private func write(_ byte: UInt8, to peer: ServedFolder) {
    let path = peer.folder.appending("a").description
    unlink(path)
    _ = FileManager.default.createFile(atPath: path, contents: Data([byte]))
  }

  /// Another client replaces the file each time before this one does. No failure is counted, as there may be none.
  @Test(arguments: Kind.allCases, [(whole, true), (whole, false), (large, true), (large, false)])
  func aFileThatHasChangedIsReplacedAtOnce(_ kind: Kind, _ setup: (length: Int64, isThere: Bool)) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    if setup.isThere { write(0, to: peer) }
    let (transport, count) = changing(setup.length) { number in if number <= 2 { write(UInt8(number), to: peer) } }
    let source = PatternSource(length: setup.length)
    _ = try await uploader(kind, peer.endpoint, transport).upload(source, as: "a", overwrite: true)
    #expect(peer.contents(of: "a") == source.bytes(count: Int(setup.length)))
    #expect(count.update { $0 } == 3)
    #expect(peer.unfinished() == 0)
  }

  @Test(arguments: Kind.allCases, [whole, large])
  func aFileThatChangesEachTimeIsGivenUp(_ kind: Kind, _ length: Int64) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let (transport, count) = changing(length) { write(UInt8($0), to: peer) }
    let uploader = try await uploader(kind, peer.endpoint, transport)
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader.upload(PatternSource(length: length), as: "a", overwrite: true)
    }
    #expect(error?.message.contains("has changed each time") == true, "\(error as Any)")
    #expect(error?.recovery == .giveUp && count.update { $0 } == 4)
    #expect(peer.contents(of: "a") == [4])
  }

  /// The file that has changed has these bytes, as when the response to an earlier request was lost.
  @Test(arguments: Kind.allCases) func theSameBytesAreNotSentAgain(_ kind: Kind) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let source = PatternSource(length: Self.whole)
    let path = peer.folder.appending("a").description
    let (transport, count) = changing(Self.whole) { _ in
      _ = FileManager.default.createFile(atPath: path, contents: Data(source.bytes(count: Int(Self.whole))))
    }
    let uploader = try await uploader(kind, peer.endpoint, transport)
    uploader.destination.acquaintance.existing.note(tellsDigests: true)
    let result = try await uploader.upload(source, as: "a", overwrite: true)
    #expect(result?.isCompared == true && count.update { $0 } == 1)
  }

  /// A file in parts replaces another one when the parts are put together.
  @Test func aFileInPartsReplacesOneThatHasChanged() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    write(0, to: peer)
    let joins = Monitor(0)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.headers["Upload-Concat"]?.hasPrefix("final") == true else { return .none }
      let number = joins.update { joins in
        joins += 1
        return joins
      }
      if number == 1 { write(1, to: peer) }
      return .none
    }
    var uploader = try await uploader(.tus, peer.endpoint, transport)
    uploader.partsAtOnce = 2
    let source = PatternSource(length: 17 << 20)
    _ = try await uploader.upload(source, as: "a", overwrite: true)
    #expect(joins.update { $0 } == 2)
    #expect(peer.contents(of: "a") == source.bytes(count: 17 << 20))
  }

  /// A server without MOVE gets the file by a PUT to its name, which names the file that it replaces.
  @Test func webDAVNamesTheFileThatItReplaces() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    write(0, to: peer)
    let puts = Monitor<[String?]>([])
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.method == "PUT", request.url.path.hasSuffix("/a") else { return .none }
      let number = puts.update { puts in
        puts.append(request.headers["If-Match"])
        return puts.count
      }
      if number == 1 { write(1, to: peer) }
      return .none
    }
    var uploader = Uploader(
      try await .discover(peer.endpoint, speaking: WebDAV(), over: SocketTransport()), transport: transport,
      retry: RetryPolicy(retries: 2))
    uploader.clock = LeapingClock()
    let source = PatternSource(length: Self.whole)
    _ = try await uploader.upload(source, as: "a", overwrite: true)
    #expect(peer.contents(of: "a") == source.bytes(count: Int(Self.whole)))
    let named = puts.update { $0 }
    #expect(named.count == 2 && Set(named).count == 2 && named.allSatisfy { $0?.hasPrefix("\"") == true }, "\(named)")
  }

  // MARK: Servers that tell too little

  /// A file of the length of the new one, which a question after the PUT finds too.
  private static let older = [UInt8](repeating: 1, count: 100)

  private func put(_ peer: HTTPPeer, _ names: [BytePath] = ["a"]) async throws {
    let put = UploadDestination(endpoint: peer.url, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    let uploader = Uploader(put, transport: SocketTransport(), retry: RetryPolicy(retries: 0))
    for name in names { _ = try await uploader.upload(PatternSource(length: 100), as: name, overwrite: true) }
  }

  /// The conditions of the PUTs that a server has got.
  private func conditions(_ answer: @escaping @Sendable (HTTPPeer.Request) -> HTTPPeer.Reply) -> (
    HTTPPeer, Monitor<[String]>
  ) {
    let seen = Monitor<[String]>([])
    let peer = HTTPPeer { request in
      if request.method == "PUT" {
        seen.update {
          $0.append(request.headers["If-Match"] ?? request.headers["If-None-Match"].map { "not \($0)" } ?? "none")
        }
      }
      return answer(request)
    }
    return (peer, seen)
  }

  @Test(arguments: [["ETag": "W/\"1\""], [:]] as [HTTPHeaders])
  func withoutAStrongETagWhateverIsThereIsReplaced(_ fields: HTTPHeaders) async throws {
    let (peer, seen) = conditions { $0.method == "PUT" ? .init(204) : .init(200, fields, Self.older) }
    defer { peer.stop() }
    try await put(peer)
    #expect(seen.update { $0 } == ["*"])
  }

  /// The server tells an ETag, and does not compare files with it.
  @Test func anETagThatTheServerRefusesIsNotNamedAgain() async throws {
    let (peer, seen) = conditions { request in
      if request.method != "PUT" { return .init(200, ["ETag": "\"1\""], Self.older) }
      return .init(request.headers["If-Match"] == "*" ? 204 : 412)
    }
    defer { peer.stop() }
    try await put(peer)
    #expect(seen.update { $0 } == ["\"1\"", "*"])
  }

  @Test func aServerWithoutConditionsIsAskedOnce() async throws {
    let (peer, seen) = conditions { request in
      if request.method != "PUT" { return .init(200, ["ETag": "\"1\""], Self.older) }
      return .init(request.headers["If-Match"] == "\"1\"" ? 501 : 201)
    }
    defer { peer.stop() }
    try await put(peer, ["a", "b"])
    #expect(seen.update { $0 } == ["\"1\"", "*", "*"])
  }

  @Test func aServerThatIsNotReadyIsAskedAgain() async throws {
    let (peer, seen) = conditions { $0.method == "PUT" ? .init(204) : .init(503) }
    defer { peer.stop() }
    await #expect(throws: UploadError.self) { try await put(peer) }
    #expect(seen.update { $0 }.isEmpty)
  }
}
