import BlobHTTP
import Blobs
import Synchronization

/// The last uploads of a queue. Some servers, or proxies before them, respond to a request twice, and the second
/// response is taken for a success of the next request on that connection. This shows only later, so recent uploads may
/// have to be confirmed.
final class RecentUploads: Sendable {
  struct Upload: Sendable {
    let work: ClaimedItem
    let id: Int64
    let location: String?
    /// It was begun after each connection had begun to carry one request only.
    let isAlone: Bool
  }

  private struct State {
    /// A ring; `next` is the index of the oldest upload once it is full.
    var uploads: [Upload] = []
    var next = 0
    /// Uploads that may not have been added yet: a worker can report a doubt before the queue has the response.
    var doubted: Set<Int64> = []
  }
  private static let most = 256

  private let state = Mutex(State())
  private let detector: (any MixedResponseDetector)?
  private let endpoint: HTTPURL

  init(_ uploader: Uploader) {
    detector = uploader.transport as? any MixedResponseDetector
    endpoint = uploader.destination.endpoint
  }

  /// `isAlone`: the value of `areMixed` when the upload was begun.
  func add(_ work: ClaimedItem, _ id: Int64, _ location: String?, isAlone: Bool) {
    // 256 open files may be more than the process may have.
    work.item.source.closeUntilNeeded()
    // The responses to an upload of which each request had its own connection are its own. If the server has lost this
    // upload before, it is still checked.
    if detector == nil || isAlone && work.losses == 0 { return }
    let upload = Upload(work: work, id: id, location: location, isAlone: isAlone)
    state.withLock { state in
      if state.uploads.count < Self.most { return state.uploads.append(upload) }
      state.uploads[state.next] = upload
      state.next = (state.next + 1) % Self.most
    }
  }

  /// Removes and returns the uploads that must be confirmed: all of a server that responds to requests twice, and those
  /// whose connection was lost at the next request.
  func takeDoubtful() -> [Upload] {
    guard let detector, detector.hasDoubts else { return [] }
    let mixes = detector.mixesResponses(at: endpoint)
    return state.withLock { state in
      if mixes {
        defer { state = State() }
        return state.uploads
      }
      state.doubted.formUnion(detector.takeDoubted(at: endpoint))
      if state.doubted.isEmpty { return [] }
      let doubtful = state.uploads.filter { state.doubted.contains($0.id) }
      if !doubtful.isEmpty {
        state.uploads = Array(state.uploads[state.next...] + state.uploads[..<state.next])
        state.uploads.removeAll { state.doubted.contains($0.id) }
        state.next = 0
        state.doubted.subtract(doubtful.map(\.id))
      }
      while state.doubted.count > Self.most { state.doubted.removeFirst() }
      return doubtful
    }
  }

  /// Whether the server was seen to respond to requests twice.
  var areMixed: Bool { detector.map { $0.hasDoubts && $0.mixesResponses(at: endpoint) } ?? false }

  /// Looks whether another response has arrived after the last one of a connection.
  func checkConnections() async { await detector?.checkIdleConnections(at: endpoint) }

  /// Reports that the server does not have a file though it has said so.
  func noteLoss() { detector?.noteMixedResponses(at: endpoint) }
}
