import BlobHTTP

/// How many requests go at once: as many as fill the link, as few as that takes, and no more than the server bears.
///
/// Pure: it is told what happens, with times since any fixed moment. It begins with few and doubles for as long as nothing
/// has come back; then it compares what arrives in a second with twice as many, half as many again, or a quarter less, and
/// keeps the fewest that are as good.
struct ConcurrencyController: Sendable {
  /// Requests that may be under way now.
  private(set) var width: Int
  /// Never more than this.
  let most: Int
  private var phase: Phase
  /// The server was asked too much once: it is gone towards more in small steps.
  private var wasRefused = false
  private var sample = ThroughputSample()
  /// Nothing is known of the host, and no body has gone there.
  private var isNew: Bool
  /// As many as what was asked before the first body has shown to be worth a try.
  private(set) var ahead = 0
  private var unheard = Self.mostUnheard
  /// The last time it was made less for a refusal; what was sent before does not count twice.
  private var lastCut: Duration?
  /// Bytes a second with the width that is kept, and the most there were since the link last changed.
  private var (base, peak) = (0.0, 0.0)
  /// How often in a row the rate was another.
  private var strange = 0
  private var less = ProbeBackoff(8)
  private var more = ProbeBackoff(4)

  private enum Phase {
    /// Nothing can change it.
    case fixed
    /// Nothing was measured yet.
    case starting
    case steady
    /// Another width than the one that is kept, to see what comes of it; leaping: twice as many.
    case trying(from: Int, isLeap: Bool)
  }

  /// Workers with which a server that answers at once is served with the least work.
  static let first = 4
  /// Where each of them keeps a processor busy.
  static let firstCostly = 2
  /// No fewer are tried for their own sake: when one of few waits, much of the link does.
  static let fewest = 8
  /// Bytes of bodies that may be under way before anything has come back, and the most that one counts for: a link is filled
  /// by a few large ones too, and they would all be half-done when it breaks.
  static let mostUnheard: Int64 = 64 << 20
  static let mostCounted: Int64 = 8 << 20
  /// Seconds. Where requests take longer, many of them are too many sooner.
  private static let long = 5.0
  /// Where an answer comes sooner it is the processor that is waited for.
  private static let near = 0.001
  /// Bytes a second of one connection, above which it is the processor that is waited for.
  private static let plenty = 250e6

  /// `learned`: what an earlier run has found of this host.
  init(most: Int, learned: LearnedWidth? = nil) {
    self.most = most
    width = max(1, min(most, learned?.width ?? Self.first))
    wasRefused = learned?.wasRefused ?? false
    phase = .starting
    isNew = learned == nil
  }

  /// Always so many.
  init(fixed: Int) {
    (most, width, phase, isNew) = (fixed, fixed, .fixed, false)
  }

  /// What the next run should begin with; nil: nothing was found.
  var learned: LearnedWidth? {
    switch phase {
    case .fixed: nil
    case .starting: wasRefused ? LearnedWidth(width: width, wasRefused: true) : nil
    case .steady: LearnedWidth(width: width, wasRefused: wasRefused)
    case .trying(let from, _): LearnedWidth(width: from, wasRefused: wasRefused)
    }
  }

  // MARK: What happens

  /// The first request with a body comes; costly: it keeps a processor busy. Of further ones nothing is made.
  mutating func begins(isCostly: Bool) {
    if isNew && isCostly { width = min(width, Self.firstCostly) }
    // Each has twice the buffers, and TLS of its own.
    if isCostly { unheard = Self.mostUnheard / 2 }
    isNew = false
  }

  /// It may still become more by `still`.
  var mayLeap: Bool {
    if case .starting = phase { return !wasRefused && width < most && !sample.isOpen }
    return false
  }

  /// Nothing has come back for a while of what goes before the bodies: the server is far away, and they will want connections.
  mutating func stillBefore() {
    if mayLeap { ahead = min(most, max(width, ahead) * 2) }
  }

  /// Another request wants to go, and need not wait until it is seen again that the server is far away.
  mutating func catchUp(underWay bytes: Int64) {
    if mayLeap, width < ahead, bytes < unheard { width = min(ahead, width * 2) }
  }

  /// What waits has not moved for a while: if nothing has come back yet, the server is far away.
  mutating func still(underWay bytes: Int64) {
    if mayLeap, bytes < unheard { width = min(most, width * 2) }
  }

  /// A request with a body has come to a good end, or one more piece of a long body has.
  ///
  /// - `active`: requests under way, this one included. `isWanted`: another waits for its place.
  mutating func arrived(_ bytes: Int64, from began: Duration, to now: Duration, active: Int, isWanted: Bool) {
    if case .fixed = phase { return }
    // Fewer than may go: how fast these went tells nothing of the width.
    guard sample.isOpen, active * 8 >= width * 7 else { return sample = ThroughputSample(from: now) }
    sample.add(bytes, from: began, to: now, active: min(active, width), isWanted: isWanted)
    if !sample.isEnough(for: width, roughly: isRough, at: now) { return }
    let before = width
    judge(sample)
    // Those under way with another width must end first, and new connections become fast.
    sample = ThroughputSample(from: width == before ? now : now + .seconds(sample.duration))
  }

  /// The server has refused a request, sent at `began`, for being asked too much.
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
      (base, peak) = (0, 0)
    }
    if case .starting = phase {} else { phase = .steady }
    sample = ThroughputSample(from: now)
  }

  // MARK: What it means

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
      keep(rate)
      return leap(sample)
    case .trying(let from, let isLeap) where from < width:
      if rate >= base * (isLeap ? 1.15 : 1.03) {
        keep(rate)
        more.left = 0
        return wasRefused ? tryAnother(sample) : leap(sample)
      }
      more.failed()
      return goBack(to: from)
    case .trying(let from, _):
      // Many small losses would add up: compared with the best, not with the last.
      if rate < max(base, peak) * 0.99 {
        less.failed()
        // Some more than the fewest that will do: times change.
        return goBack(to: wasRefused ? from : min(most, from + max(1, from / 3)))
      }
      keep(rate)
      less.left = 0
    case .steady:
      if base > 0, rate < base * 0.7 || rate > base * 1.4 {
        strange += 1
        if strange < 2 { return }
        // Another link than before.
        (base, peak, less, more) = (rate, rate, ProbeBackoff(8), ProbeBackoff(4))
        strange = 0
        return leap(sample)
      }
      strange = 0
      base = base > 0 ? base * 0.7 + rate * 0.3 : rate
      if base < peak * 0.975 {
        // It was made too few by mistake, or the link has become slower: more are tried now.
        more.left = 0
        peak = base
      }
      peak = max(peak * 0.999, base)
    }
    tryAnother(sample)
  }

  private mutating func keep(_ rate: Double) {
    phase = .steady
    base = rate
    peak = max(peak, rate)
  }

  private mutating func goBack(to width: Int) {
    self.width = width
    phase = .steady
  }

  /// Whether more workers could bring more: each of these waits for the way, or the server, and not for this machine.
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

/// Measurements between one try and the next.
private struct ProbeBackoff {
  private var wait: Int
  var left: Int

  init(_ wait: Int) { (self.wait, left) = (wait, wait) }

  mutating func isOver() -> Bool {
    left -= 1
    return left < 0
  }

  /// It was of no use: from now on it is tried half as often.
  mutating func failed() {
    wait = min(wait * 2, 32)
    left = wait
  }
}
