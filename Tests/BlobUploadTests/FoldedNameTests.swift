import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Two files of one push that replaces files, at a server which treats their names as one: neither replaces the other.
@Suite struct FoldedNameTests {
  // Pairs of names that are equal on a file system which ignores case or Unicode form.
  static let pairs = [("IMG_1.JPG", "img_1.jpg"), ("Gr\u{fc}n.jpg", "Gru\u{308}n.jpg")]

  /// A server that stores files. With `folds`, names that differ in case or Unicode form are one name. It returns the
  /// number of PUTs to the name as the ETag.
  final class Store: Sendable {
    private struct File {
      var bytes: [UInt8]
      var version: Int
    }
    private let files = Mutex<[String: File]>([:])
    private let count = Atomic(0)
    private let folds: Bool

    init(folds: Bool) { self.folds = folds }

    var contents: [[UInt8]] { files.withLock { $0.values.map(\.bytes) } }

    func put(_ path: String, _ bytes: [UInt8]) {
      let version = count.add(1, ordering: .relaxed).newValue
      files.withLock { $0[key(path)] = File(bytes: bytes, version: version) }
    }

    private func key(_ path: String) -> String {
      let name = path.split(separator: "/").last.map(String.init) ?? ""
      guard folds else { return name }
      return String(decoding: PercentCoding.decoded(name.utf8), as: UTF8.self).uppercased().lowercased()
    }

    func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
      switch request.method {
      case "PUT":
        put(request.path, request.body)
        return .init(201)
      case "MOVE":
        guard let file = files.withLock({ $0.removeValue(forKey: key(request.path)) }) else { return .init(404) }
        put(request.headers["Destination"] ?? "", file.bytes)
        return .init(201)
      case "HEAD", "GET":
        guard let file = files.withLock({ $0[key(request.path)] }) else { return .init(404) }
        return .init(200, ["ETag": "\"\(file.version)\""], file.bytes)
      default:
        return .init(204)
      }
    }
  }

  private func queue(_ desk: Desk, _ peer: HTTPPeer, isDAV: Bool) -> UploadQueue {
    var queue = desk.queue(SocketTransport())
    let uploadProtocol: any UploadProtocol = isDAV ? WebDAV() : PlainPut()
    queue.uploader.destination = UploadDestination(
      endpoint: peer.url, uploadProtocol: uploadProtocol, limits: PartLimits(firstPart: .max))
    queue.uploader.destination.acquaintance.putAnswers.trust(folderOf: peer.url)
    return queue
  }

  @Test(arguments: pairs, [false, true])
  func aPushDoesNotReplaceAFileThatItHasStoredItself(_ pair: (String, String), _ isDAV: Bool) async throws {
    let (desk, store) = (try await Desk(), Store(folds: true))
    let peer = HTTPPeer { store.answer($0) }
    defer { peer.stop() }
    for round in 1...2 {
      let ends = Ends()
      try await desk.run(
        queue(desk, peer, isDAV: isDAV), [pair.0, pair.1], ends, lengths: [1000, 900], overwrite: true)
      let errors = ends.errors
      #expect(errors.count == 1 && errors.first?.side == .file, "round \(round): \(errors)")
      let text = errors.first?.message ?? ""
      #expect(text.contains("/card/\(pair.0)") || text.contains("/card/\(pair.1)"), "\(text)")
      #expect(store.contents.count == 1, "round \(round)")
      #expect(round == 1 ? ends.sent == 1 : ends.doneBefore == 1)
    }
    // The length shows which of them was stored; the failed one has not replaced it.
    #expect([1000, 900].contains(store.contents.first?.count ?? 0))
  }

  /// Files of an earlier push are what `--overwrite` is for.
  @Test func filesOfAnEarlierPushAreReplaced() async throws {
    let (desk, store) = (try await Desk(), Store(folds: true))
    let peer = HTTPPeer { store.answer($0) }
    defer { peer.stop() }
    try await desk.run(queue(desk, peer, isDAV: false), ["a.jpg"], overwrite: true)
    let outcomes = try await desk.run(queue(desk, peer, isDAV: false), ["A.JPG"], length: 900, overwrite: true)
    #expect(outcomes.sent == 1 && store.contents.map(\.count) == [900])
  }

  @Test(arguments: [false, true]) func namesThatAreTwoToTheServerAreBothReplaced(_ isDAV: Bool) async throws {
    let store = Store(folds: false)
    let peer = HTTPPeer { store.answer($0) }
    defer { peer.stop() }
    for lengths in [[1000, 900], [800, 700]] as [[Int64]] {
      let desk = try await Desk()
      let ends = Ends()
      try await desk.run(
        queue(desk, peer, isDAV: isDAV), ["a.jpg", "A.JPG"], ends, lengths: lengths, overwrite: true)
      #expect(ends.sent == 2, "\(ends.errors)")
      #expect(Set(store.contents.map { Int64($0.count) }) == Set(lengths))
    }
  }

  /// Nothing is lost if both files have the same bytes.
  @Test func filesOfTheSameBytesMayHaveOneName() async throws {
    let (desk, store) = (try await Desk(), Store(folds: true))
    let peer = HTTPPeer { store.answer($0) }
    defer { peer.stop() }
    let ends = Ends()
    try await desk.run(queue(desk, peer, isDAV: false), ["a.jpg", "A.JPG"], ends, overwrite: true)
    #expect(ends.sent == 2 && store.contents.count == 1, "\(ends.errors)")
  }
}

/// Counts the ends of items, and records the errors of failed ones. Unlike `Outcomes`, it needs no names, which may be
/// equal as strings.
final class Ends: UploadObserver {
  private let state = Mutex<(sent: Int, doneBefore: Int, errors: [UploadError])>((0, 0, []))
  var sent: Int { state.withLock { $0.sent } }
  var doneBefore: Int { state.withLock { $0.doneBefore } }
  var errors: [UploadError] { state.withLock { $0.errors } }

  func started(_ item: UploadItem, _ progress: UploadProgress) {}
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    state.withLock { state in
      switch outcome {
      case .sent: state.sent += 1
      case .doneBefore: state.doneBefore += 1
      case .failed(let error): state.errors.append(error)
      case .busy: break
      }
    }
  }
}
