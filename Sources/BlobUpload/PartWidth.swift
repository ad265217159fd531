import BlobHTTP

/// How many parts of a file go at once: more for as long as more arrives. For transports that leave it to others.
///
/// Measured in whole parts, since what is handed to a connection has not arrived yet.
struct PartWidth: Sendable {
  private(set) var width: Int
  private let most: Int
  /// Bytes a second with the last width.
  private var best = 0.0
  private var bytes: Int64 = 0
  private var parts = 0
  private var since: ContinuousClock.Instant

  /// `most` at once at the most; with `fixed`, from the beginning.
  init(most: Int, fixed: Bool = false, at now: ContinuousClock.Instant = .now) {
    self.most = most
    width = fixed ? most : min(most, 4)
    since = now
  }

  /// A part of so many bytes has arrived. Once all that were under way have, twice as many go if that was worth it.
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
  /// Sends parts of one file, several at once. Returns those that have arrived, and what keeps the first of the others from
  /// it; the rest are not begun then, and those under way are cancelled.
  func atOnce<Part: Sendable, Arrived: Sendable>(
    _ parts: [Part], isOneByOne: Bool = false, bytes: (Part) -> Int64,
    _ send: @escaping @Sendable (Part) async -> Result<Arrived, UploadError>
  ) async -> (arrived: [Arrived], failure: UploadError?) {
    let chosen = isOneByOne ? 1 : partsAtOnce
    // A transport that finds out how many should go takes as many of these; the others wait there.
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
          // Those that are cancelled for it say so, too.
          failure = failure ?? error
          group.cancelAll()
        }
      }
    }
  }
}
