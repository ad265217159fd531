import BlobHTTP
import Blobs
import Synchronization

/// The last uploads of a queue. Some servers, or proxies before them, respond to a request twice, and the second
/// response is taken for a success of the next request on that connection. This shows only later, so recent uploads may
/// have to be confirmed.
final class RecentUploads: Sendable {
  struct Upload: Sendable {
    let work: UploadQueue.Claimed
    let id: Int64
    let location: String?
    /// It was stored after each connection had begun to carry one request only.
    let isAlone: Bool
  }

  private struct State {
    /// A ring; `next` is the index of the oldest upload once it is full.
    var uploads: [Upload] = []
    var next = 0
    /// URLs whose upload may not have been added yet: a worker can report a doubt before the queue has the response.
    var doubted: [HTTPURL] = []
  }
  private static let most = 256

  private let state = Mutex(State())
  private let detector: (any MixedResponseDetector)?
  private let endpoint: HTTPURL

  init(_ uploader: Uploader) {
    detector = uploader.transport as? any MixedResponseDetector
    endpoint = uploader.destination.endpoint
  }

  func add(_ work: UploadQueue.Claimed, _ id: Int64, _ location: String?) {
    // 256 open files may be more than the process may have.
    work.item.source.closeUntilNeeded()
    guard let detector else { return }
    let isAlone = detector.hasDoubts && detector.mixesResponses(at: endpoint)
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
      state.doubted = (state.doubted + detector.takeDoubted(at: endpoint)).suffix(Self.most)
      if state.doubted.isEmpty { return [] }
      var doubtful: [Upload] = []
      for upload in state.uploads {
        guard let index = state.doubted.firstIndex(of: upload.work.item.target.url) else { continue }
        state.doubted.remove(at: index)
        doubtful.append(upload)
      }
      let ids = Set(doubtful.map(\.id))
      if !ids.isEmpty {
        state.uploads = Array(state.uploads[state.next...] + state.uploads[..<state.next])
        state.uploads.removeAll { ids.contains($0.id) }
        state.next = 0
      }
      return doubtful
    }
  }

  /// Whether the server was seen to respond to requests twice.
  var areMixed: Bool { detector?.mixesResponses(at: endpoint) == true }

  /// Reports that the server does not have a file though it has said so.
  func noteLoss() { detector?.noteMixedResponses(at: endpoint) }
}
