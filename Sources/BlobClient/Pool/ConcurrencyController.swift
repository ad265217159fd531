import BlobHTTP

/// Decides how many requests run at the same time: the fewest that fill the link, and no more than the server accepts.
///
/// It has no clock and does no I/O: the caller reports events, with times since any fixed moment. It starts with few
/// requests and doubles their number as long as no response has come back. Then it compares the throughput with twice
/// as many, half as many again, or a quarter fewer, and uses the smallest number that is as fast.
struct ConcurrencyController: Sendable {
  /// The number of requests that may run now.
  private(set) var width: Int
  /// Upper limit of `width`.
  let most: Int
  private var phase: Phase
  /// The server has rejected requests because there were too many; since then `width` grows in small steps.
  private var wasRefused = false
  private var sample = ThroughputSample()
  /// Nothing is known about the host, and no body was sent to it.
  private var isNew: Bool
  /// The number of connections that seems worthwhile according to the requests before the first body; 0 at first.
  private(set) var ahead = 0
  private var unheard = Self.mostUnheard
  /// Time of the last reduction because of a rejected request. Rejections of requests that began earlier do not count
  /// again.
  private var lastCut: Duration?
  private var link = LinkThroughput()
  private var less = ProbeBackoff(8)
  private var more = ProbeBackoff(4)

  private enum Phase {
    /// `width` never changes.
    case fixed
    /// Nothing was measured yet.
    case starting
    case steady
    /// Measures another width than `from`. A leap doubles the width.
    case trying(from: Int, isLeap: Bool)
  }

  /// Initial width: this many workers serve a server that responds at once with the least CPU time.
  static let first = 4
  /// Initial width if each request keeps a processor busy.
  static let firstCostly = 2
  /// The search for a smaller width stops here: with fewer workers, one that waits leaves much of the link unused.
  static let fewest = 8
  /// Body bytes that may be under way before any response has come back, and the maximum that one body counts for. A
  /// few large bodies fill the link too, and all of them would be incomplete if it breaks.
  static let mostUnheard: Int64 = 64 << 20
  static let mostCounted: Int64 = 8 << 20
  /// Seconds. If requests take longer than this, a smaller width is tried sooner.
  private static let long = 5.0
  /// Seconds. Responses that arrive sooner are limited by the processor, not by the network.
  private static let near = 0.001
  /// Bytes per second of one connection. A faster connection is limited by the processor.
  private static let plenty = 250e6

  /// Starts with `learned`, what an earlier run has found out about this host; nil: nothing is known.
  init(most: Int, learned: LearnedConcurrency? = nil) {
    self.most = most
    width = max(1, min(most, learned?.width ?? Self.first))
    wasRefused = learned?.wasRefused ?? false
    phase = .starting
    isNew = learned == nil
  }

  /// A controller whose width never changes.
  init(fixed: Int) {
    (most, width, phase, isNew) = (fixed, fixed, .fixed, false)
  }

  /// The concurrency with which the next run should begin; nil: nothing was learned.
  var learned: LearnedConcurrency? {
    switch phase {
    case .fixed: nil
    case .starting: wasRefused ? LearnedConcurrency(width: width, wasRefused: true) : nil
    case .steady: LearnedConcurrency(width: width, wasRefused: wasRefused)
    case .trying(let from, _): LearnedConcurrency(width: from, wasRefused: wasRefused)
    }
  }

  // MARK: Events

  /// Reports a request with a body; only the first one has an effect on the width. `isCostly`: it keeps a processor
  /// busy.
  mutating func begins(isCostly: Bool) {
    if isNew && isCostly { width = min(width, Self.firstCostly) }
    // Costly requests have twice the buffers, and a TLS state each.
    if isCostly { unheard = Self.mostUnheard / 2 }
    isNew = false
  }

  /// Whether `still` may still increase the width.
  var mayLeap: Bool {
    if case .starting = phase { return !wasRefused && width < most && !sample.isOpen }
    return false
  }

  /// Reports that the requests before the first body get no response for a while: the server is far away, and the
  /// bodies will need more connections.
  mutating func stillBefore() {
    if mayLeap { ahead = min(most, max(width, ahead) * 2) }
  }

  /// Reports that another request wants to start. It may use `ahead`, and need not wait until `still` has found again
  /// that the server is far away.
  mutating func catchUp(underWay bytes: Int64) {
    if mayLeap, width < ahead, bytes < unheard { width = min(ahead, width * 2) }
  }

  /// Reports that the queue has not moved for a while. If no response has come back yet, the server is far away.
  mutating func still(underWay bytes: Int64) {
    if mayLeap, bytes < unheard { width = min(most, width * 2) }
  }

  /// Reports the success of a request with a body, or the next piece of a long body.
  ///
  /// - `active`: requests under way, including this one. `isWanted`: another request is in the queue.
  mutating func arrived(_ bytes: Int64, from began: Duration, to now: Duration, active: Int, isWanted: Bool) {
    if case .fixed = phase { return }
    // With fewer requests than `width` allows, their throughput says nothing about the width.
    guard sample.isOpen, active * 8 >= width * 7 else { return sample = ThroughputSample(from: now) }
    sample.add(bytes, from: began, to: now, active: min(active, width), isWanted: isWanted)
    if !sample.isEnough(for: width, roughly: isRough, at: now) { return }
    let before = width
    judge(sample)
    // Waits until requests with the old width have ended and new connections have reached their speed.
    sample = ThroughputSample(from: width == before ? now : now + .seconds(sample.duration))
  }

  /// Reports that the server has rejected a request, sent at `began`, because there were too many.
  mutating func refused(from began: Duration, at now: Duration) {
    if case .fixed = phase { return }
    if let lastCut, began < lastCut { return }
    wasRefused = true
    lastCut = now
    if case .trying(let from, _) = phase, from < width {
      width = from
      more.failed()
    } else {
      width = max(1, width / 2)
      link.forget()
    }
    if case .starting = phase {} else { phase = .steady }
    sample = ThroughputSample(from: now)
  }

  // MARK: Decisions

  private var isRough: Bool {
    switch phase {
    case .starting, .trying(_, isLeap: true): true
    default: false
    }
  }

  private mutating func judge(_ sample: ThroughputSample) {
    let rate = sample.rate
    switch phase {
    case .fixed: return
    case .starting:
      settle(rate)
      return leap(sample)
    case .trying(let from, let isLeap) where from < width:
      if rate >= link.base * (isLeap ? 1.15 : 1.03) {
        settle(rate)
        more.left = 0
        return wasRefused ? tryAnother(sample) : leap(sample)
      }
      more.failed()
      return goBack(to: from)
    case .trying(let from, _):
      // Compares with the best throughput, not the last one: otherwise many small losses would add up.
      if rate < max(link.base, link.peak) * 0.99 {
        less.failed()
        // Uses some more than the smallest sufficient width, because conditions change.
        return goBack(to: wasRefused ? from : min(most, from + max(1, from / 3)))
      }
      settle(rate)
      less.left = 0
    case .steady:
      switch link.add(rate) {
      case .none: break
      case .unclear: return
      // The width was reduced by mistake, or the link has become slower: a larger width is tried now.
      case .fell: more.left = 0
      case .changed:
        (less, more) = (ProbeBackoff(8), ProbeBackoff(4))
        return leap(sample)
      }
    }
    tryAnother(sample)
  }

  private mutating func settle(_ rate: Double) {
    phase = .steady
    link.keep(rate)
  }

  private mutating func goBack(to width: Int) {
    self.width = width
    phase = .steady
  }

  /// Whether more workers could increase the throughput: each worker waits for the network or the server, not for this
  /// machine.
  private func isWorthMore(_ sample: ThroughputSample) -> Bool {
    sample.isWanted && sample.duration >= Self.near && sample.rate < Double(width) * Self.plenty && width < most
  }

  private mutating func leap(_ sample: ThroughputSample) {
    guard isWorthMore(sample), !wasRefused else { return }
    phase = .trying(from: width, isLeap: true)
    width = min(most, width * 2)
  }

  private mutating func tryAnother(_ sample: ThroughputSample) {
    if sample.duration > Self.long { less.left -= 3 }
    if isWorthMore(sample), more.isOver() {
      phase = .trying(from: width, isLeap: false)
      width = min(most, width + max(1, width / (wasRefused ? 16 : 2)))
    } else if width > Self.fewest, less.isOver() {
      phase = .trying(from: width, isLeap: false)
      width = max(Self.fewest, width * 3 / 4)
    }
  }
}

/// The throughput of the link in bytes per second.
private struct LinkThroughput {
  /// With the current width; 0: unknown.
  private(set) var base = 0.0
  /// The maximum since the link last changed.
  private(set) var peak = 0.0
  /// How many times in a row the measured throughput was very different.
  private var strange = 0

  enum Change {
    case none, fell
    /// The throughput was very different once.
    case unclear
    /// The throughput is that of another link.
    case changed
  }

  mutating func forget() { (base, peak) = (0, 0) }

  /// Takes the throughput of a new width.
  mutating func keep(_ rate: Double) { (base, peak) = (rate, max(peak, rate)) }

  /// Adds a measurement with an unchanged width.
  mutating func add(_ rate: Double) -> Change {
    if base > 0, rate < base * 0.7 || rate > base * 1.4 {
      strange += 1
      if strange < 2 { return .unclear }
      (base, peak, strange) = (rate, rate, 0)
      return .changed
    }
    strange = 0
    base = base > 0 ? base * 0.7 + rate * 0.3 : rate
    let hasFallen = base < peak * 0.975
    peak = hasFallen ? base : max(peak * 0.999, base)
    return hasFallen ? .fell : .none
  }
}

/// Counts the measurements until the next attempt with another width.
private struct ProbeBackoff {
  private var wait: Int
  var left: Int

  init(_ wait: Int) { (self.wait, left) = (wait, wait) }

  mutating func isOver() -> Bool {
    left -= 1
    return left < 0
  }

  /// The attempt was of no use: the next interval is twice as long.
  mutating func failed() {
    wait = min(wait * 2, 32)
    left = wait
  }
}
