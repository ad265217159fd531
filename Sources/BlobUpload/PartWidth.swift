import BlobHTTP
import Blobs

/// Decides how many parts of a file are sent at a time: more as long as the throughput grows. Used with transports that
/// do not control their concurrency themselves.
///
/// Measures whole parts, because bytes that were handed to a connection have not arrived yet.
struct PartWidth: Sendable {
  private(set) var width: Int
  private let most: Int
  /// The best throughput so far, in bytes per second.
  private var best = 0.0
  private var bytes: Int64 = 0
  private var parts = 0
  private var since: ContinuousClock.Instant

  /// `most` is the maximum; with `fixed`, the width from the beginning.
  init(most: Int, fixed: Bool = false, at now: ContinuousClock.Instant = .now) {
    self.most = most
    width = fixed ? most : min(most, 4)
    since = now
  }

  /// Reports that a part with this many bytes has arrived. Once all parts under way have arrived, the width is doubled
  /// if the throughput has grown.
  mutating func arrived(_ count: Int64, at now: ContinuousClock.Instant = .now) {
    (bytes, parts) = (bytes + count, parts + 1)
    if width == most || parts < width { return }
    let seconds = since.duration(to: now) / .seconds(1)
    let rate = Double(bytes) / max(seconds, 0.001)
    if rate > best * 1.25 { width = min(most, width * 2) }
    best = max(best, rate)
    (bytes, parts, since) = (0, 0, now)
  }
}

extension Uploader {
  /// The number of parts of a source that are read at a time; nil: as many as the link gains by. Each part of a source
  /// that is slow to seek costs time, so there is only one more than is being sent.
  func mostReaders(of info: BlobInfo) -> Int? { info.isSlowToSeek && partsAtOnce == nil ? 2 : nil }

  /// Sends parts of one file in their order, several at a time. Returns the parts that have arrived, and the first failure; after a
  /// failure no further part is started, and those under way are cancelled.
  func atOnce<Part: Sendable, Arrived: Sendable>(
    _ parts: [Part], atMost most: Int? = nil, bytes: (Part) -> Int64,
    _ send: @escaping @Sendable (Part) async -> Result<Arrived, UploadError>
  ) async -> (arrived: [Arrived], failure: UploadError?) {
    let chosen = most ?? partsAtOnce
    // A transport that adapts its concurrency gets all these parts, and queues those that must wait.
    let isFixed = chosen != nil || (transport as? any AdaptiveTransport)?.adapts == true
    var pace = PartWidth(most: chosen ?? UploadDestination.mostParts, fixed: isFixed)
    return await withTaskGroup(of: (bytes: Int64, result: Result<Arrived, UploadError>).self) { group in
      var next = parts[...]
      var running = 0
      var arrived: [Arrived] = []
      var failure: UploadError?
      while true {
        while failure == nil, running < pace.width, let part = next.popFirst() {
          let count = bytes(part)
          group.addTask { await destination.acquaintance.parts.pass { (count, await send(part)) } }
          running += 1
        }
        guard let ended = await group.next() else { return (arrived, failure) }
        running -= 1
        switch ended.result {
        case .success(let part):
          arrived.append(part)
          pace.arrived(ended.bytes)
        case .failure(let error):
          // Parts that are cancelled because of the first failure report failures too.
          failure = failure ?? error
          group.cancelAll()
        }
      }
    }
  }
}
