import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// A plain PUT replaces the file under a name, so the name is queried first.
@Suite struct NameInUseTests {
  static func asking() -> PlainPut {
    var put = PlainPut()
    put.asksFirst = true
    return put
  }

  /// An uploader that queries names first, for a server whose successes are trusted.
  private static func askingUploader(to peer: HTTPPeer, retries: Int) -> Uploader {
    var uploader = Uploader(
      UploadDestination(endpoint: peer.url, uploadProtocol: asking(), limits: PartLimits(firstPart: .max)),
      transport: SocketTransport(), retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    uploader.destination.acquaintance.putAnswers.trust(folderOf: peer.url)
    return uploader
  }

  /// A server that has `content` under the name, responds `head` to HEAD, and counts the PUTs. It has nothing under a
  /// name that no file has, which the client asks for before it takes a name for taken.
  private func push(head: Int, get: Int = 200, content: [UInt8]) async -> (puts: Int, error: UploadError?) {
    let puts = Atomic(0)
    let peer = HTTPPeer { request in
      if request.path.contains("fullbore-asks") { return .init(404) }
      switch request.method {
      case "HEAD": return .init(head)
      case "GET": return .init(get, [:], get == 200 ? content : [])
      case "PROPFIND": return .init(405)
      default:
        puts.add(1, ordering: .relaxed)
        return .init(201)
      }
    }
    defer { peer.stop() }
    let error = await Self.askingUploader(to: peer, retries: 1).failure()
    return (puts.load(ordering: .relaxed), error)
  }

  private static let statuses = [
    201, 204, 206, 304, 400, 401, 402, 403, 405, 406, 412, 415, 418, 423, 451, 501, 505, 520,
  ]

  @Test(arguments: statuses)
  func anotherFileIsFoundByGetWhereHeadSaysNothing(_ status: Int) async {
    let (puts, error) = await push(head: status, content: [UInt8](repeating: 7, count: 1000))
    #expect(puts == 0 && error?.status == 409 && error?.side == .file, "\(error as Any)")
  }

  @Test(arguments: statuses)
  func theSameBytesAreFoundByGetWhereHeadSaysNothing(_ status: Int) async {
    let (puts, error) = await push(head: status, content: PatternSource(length: 1000).bytes(count: 1000))
    #expect(puts == 0 && error == nil, "\(error as Any)")
  }

  @Test(arguments: statuses, [404, 410])
  func aNameThatGetDoesNotFindIsFree(_ status: Int, _ get: Int) async {
    let (puts, error) = await push(head: status, get: get, content: [])
    #expect(puts == 1 && error == nil, "\(error as Any)")
  }

  /// For example a presigned URL, or a receiver that supports PUT only.
  @Test(arguments: [401, 403, 405, 501], [401, 403, 405, 501])
  func aServerThatLetsNobodyLookIsSentTheFile(_ status: Int, _ get: Int) async {
    let (puts, error) = await push(head: status, get: get, content: [])
    #expect(puts == 1 && error == nil, "\(error as Any)")
  }

  @Test(arguments: [(204, 204), (400, 400), (405, 400), (400, 403), (418, 405), (423, 423), (304, 304), (520, 520)])
  func nothingIsSentWhereTheServerDoesNotSayWhatIsThere(_ status: Int, _ get: Int) async {
    let (puts, error) = await push(head: status, get: get, content: [])
    #expect(puts == 0)
    #expect(error?.message.contains("--overwrite sends without asking") == true, "\(error as Any)")
  }

  /// Another client stores a file of that name while the first PUT is refused.
  @Test(arguments: [423, 429, 500, 503])
  func aFileThatCameBetweenTwoTriesIsNotReplaced(_ status: Int) async {
    let puts = Atomic(0)
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "PUT" where puts.add(1, ordering: .relaxed).oldValue == 0: return .status(status)
      case "PUT": return .status(201)
      case "PROPFIND": return .status(405)
      default: return puts.load(ordering: .relaxed) == 0 ? .status(404) : .status(200, ["Content-Length": "14"])
      }
    }
    let error = await uploader(Self.asking(), script).failure()
    #expect(
      error?.status == 409 && script.methods.prefix(3) == ["HEAD", "PUT", "HEAD"], "\(script.methods) \(error as Any)")
  }

  /// The file that a server has under the name after a PUT to it was interrupted.
  enum Left: CaseIterable { case nothing, part, whole, shorter, longer, sameLength }

  /// A server that publishes an incomplete body when the connection breaks, while other clients write too.
  @Test(arguments: Left.allCases) func onlyAPartOfOurOwnFileIsReplaced(_ left: Left) async {
    let ours = PatternSource(length: 1000).bytes(count: 1000)
    let content: [UInt8]? =
      switch left {
      case .nothing: nil
      case .part: Array(ours[..<14])
      case .whole: ours
      case .shorter: [1, 2, 3]
      case .longer: ours + [1]
      case .sameLength: Array(ours.reversed())
      }
    let stored = Monitor<(puts: Int, bytes: [UInt8]?)>((0, nil))
    let peer = HTTPPeer { request in
      stored.update { stored in
        guard request.method == "PUT" else { return stored.bytes.map { .init(200, [:], $0) } ?? .init(404) }
        stored.puts += 1
        switch stored.puts {
        case 1:
          stored.bytes = content
          return nil
        // A refused PUT changes nothing.
        case 2: return .init(503)
        default:
          stored.bytes = request.body
          return .init(201)
        }
      }
    }
    defer { peer.stop() }
    let error = await Self.askingUploader(to: peer, retries: 4).failure()
    let (puts, bytes) = stored.update { $0 }
    switch left {
    case .nothing, .part: #expect(error == nil && puts == 3 && bytes == ours, "\(error as Any)")
    case .whole: #expect(error == nil && puts == 1 && bytes == ours, "\(error as Any)")
    case .shorter, .longer, .sameLength:
      #expect(error?.status == 409 && puts == 1 && bytes == content, "\(error as Any)")
      #expect(error?.message.contains("while this one was sent") == true, "\(error as Any)")
    }
  }

  // Pairs of names that are equal on a file system which ignores case or Unicode form.
  private static let pairs = [
    ("IMG_1.JPG", "img_1.jpg"), ("caf\u{e9}", "cafe\u{301}"), ("\u{c9}T\u{c9}", "e\u{301}te\u{301}"),
  ]

  /// A store with the names of such a file system. It stores the first file only once another upload waits for the
  /// name, and ignores the condition `Overwrite: F`.
  private final class FoldingStore: Sendable {
    let names = Mutex<NameGates?>(nil)
    private let isFirst = Atomic(true)
    private let files = Mutex<[FoldedName: [UInt8]]>([:])
    private func name(_ url: String) -> FoldedName { FoldedName(host.resolve(url) ?? host) }

    var count: Int { files.withLock { $0.count } }

    func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
      switch request.method {
      case "PUT":
        let names = names.withLock { $0 }
        if isFirst.exchange(false, ordering: .relaxed) {
          for _ in 0..<5000 where names?.count ?? 2 < 2 { usleep(1000) }
        }
        files.withLock { $0[name(request.path)] = request.body }
        return .init(201)
      case "MOVE":
        files.withLock { $0[name(request.headers["Destination"] ?? "")] = $0.removeValue(forKey: name(request.path)) }
        return .init(201)
      case "HEAD", "GET": return files.withLock { $0[name(request.path)] }.map { .init(200, [:], $0) } ?? .init(404)
      default:
        return .init(204)
      }
    }
  }

  @Test(arguments: pairs, [false, true])
  func namesThatAreOneToTheServerAreNotLost(_ pair: (String, String), _ isDAV: Bool) async throws {
    let store = FoldingStore()
    let peer = HTTPPeer { store.answer($0) }
    defer { peer.stop() }
    let uploadProtocol: any UploadProtocol = isDAV ? WebDAV() : Self.asking()
    let uploader = Uploader(
      UploadDestination(endpoint: peer.url, uploadProtocol: uploadProtocol, limits: PartLimits(firstPart: .max)),
      transport: SocketTransport(), retry: RetryPolicy(retries: 1))
    uploader.destination.acquaintance.putAnswers.trust(folderOf: uploader.destination.endpoint)
    store.names.withLock { $0 = uploader.destination.acquaintance.names }
    let errors = await withTaskGroup(of: UploadError?.self) { group in
      for (seed, name) in [(1, pair.0), (2, pair.1)] as [(UInt64, String)] {
        group.addTask {
          do throws(UploadError) {
            _ = try await uploader.upload(PatternSource(length: 1000, seed: seed), as: BytePath(name))
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
    }
    #expect(errors.map(\.status) == [409], "\(errors)")
    #expect(store.count == 1)
    #expect(uploader.destination.acquaintance.names.count == 0)
  }
}
