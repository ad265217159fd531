import BlobHTTP
import BlobUpload
import Blobs
import Glibc
import Synchronization

/// A destination that does not answer, or that answers again.
struct Outage: Sendable, Hashable {
  /// `host:port`
  var host: String
  /// Seconds since 1970.
  var since: Int64
  /// For people.
  var text: String
  /// Until the next try; nil: none is waited for.
  var retry: Duration?
  var isOver = false
}

/// Says that a destination does not answer: once at the beginning, now and then while it lasts, and at its end.
final class OutageWatch: Sendable {
  /// A failure that is over sooner is not worth telling.
  static let patience = Duration.seconds(2)
  /// Without a failure: the server may be busy with what it has.
  static let longPatience = Duration.seconds(5)
  private static let interval = Duration.seconds(20)

  private struct State {
    /// When something moved last, and how much had moved by then.
    var moved = ContinuousClock.now
    var sum: Int64 = -1
    /// The first failure since then.
    var failed: ContinuousClock.Instant?
    var reason = ""
    /// When the next try begins.
    var next: ContinuousClock.Instant?
    var told: ContinuousClock.Instant?
    /// Since when, as it was told first. A server may stand still for long before a request of it fails.
    var since: ContinuousClock.Instant?
    /// The server itself has said how long it is to be left alone.
    var isAsked = false
  }
  private let state = Mutex(State())
  private let host: String
  /// Sources that may be the ones that do not answer: then no more is said than that nothing moves.
  private let hasSlowSources: Bool
  private let report: any PushReport
  private let counters: PushCounters
  private let ticker = Mutex<Ticker?>(nil)

  init(_ endpoint: HTTPURL, hasSlowSources: Bool = false, _ report: any PushReport, _ counters: PushCounters) {
    host = "\(endpoint.host):\(endpoint.port)"
    self.hasSlowSources = hasSlowSources
    self.report = report
    self.counters = counters
  }

  /// Looks by itself from now on, until `stop`.
  func start() {
    let ticker = Ticker { [weak self] in self?.look() }
    self.ticker.withLock { $0 = ticker }
  }

  func stop() { ticker.withLock { $0.take() }?.stop() }

  /// A try has failed, and the next one is made after `wait`. Any thread.
  func failed(_ error: UploadError, next wait: Duration, at now: ContinuousClock.Instant = .now) {
    var isAsked = false
    if case .retry(_?) = error.recovery { isAsked = true }
    guard error.isOfOutage || isAsked else { return }
    state.withLock { state in
      if state.failed == nil { state.failed = now }
      (state.reason, state.isAsked) = (error.reason, isAsked)
      // Many files wait at once, each for its own time.
      if state.next.map({ $0 <= now || now + wait < $0 }) ?? true { state.next = now + wait }
    }
  }

  /// The destination has answered, though nothing may be sent yet.
  func answered() { end(at: .now, sum: moved) }

  /// Compares with what had moved before.
  func look(at now: ContinuousClock.Instant = .now) {
    let sum = moved
    if state.withLock({ $0.sum != sum }) { return end(at: now, sum: sum) }
    let outage = state.withLock { state -> Outage? in
      let begin = state.failed ?? state.moved
      let isLong = now - begin >= (state.failed == nil ? Self.longPatience : Self.patience)
      guard isLong, state.failed != nil || counters.isWaiting else { return nil }
      if let told = state.told, now - told < Self.interval { return nil }
      state.told = now
      let since = state.since ?? begin
      state.since = since
      return describe(state, since, now)
    }
    if let outage { report.outage(outage) }
  }

  private func describe(
    _ state: State, _ begin: ContinuousClock.Instant, _ now: ContinuousClock.Instant
  ) -> Outage {
    let since = Int64(time(nil)) - (now - begin).components.seconds
    var outage = Outage(host: host, since: since, text: "")
    if state.failed == nil {
      let sent = counters.large.waitingForAnswer
      if let first = sent.first {
        // A server may take long to join parts, or to bring a film to its disk.
        let what = sent.count == 1 ? shown(first) : Quantity.plural(sent.count, "file")
        outage.text =
          "all bytes of \(what) are sent: waiting since \(clockTime(since)) (\(Quantity.text(now - begin))) for \(host) to "
          + "confirm \(sent.count == 1 ? "it" : "them")"
      } else {
        let whom = hasSlowSources ? "\(host) or a source does not answer" : "waiting for \(host)"
        outage.text = "nothing has moved since \(clockTime(since)) (\(Quantity.text(now - begin))): \(whom)"
      }
    } else {
      outage.text =
        state.isAsked
        ? "\(host) asks to be left alone for a while (\(state.reason))"
        : "\(host) does not answer since \(clockTime(since)) (\(state.reason))"
      if let next = state.next, next > now {
        outage.retry = next - now
        outage.text += ", trying again in \(Quantity.text(next - now))"
      } else {
        outage.text += ", trying again"
      }
    }
    return outage
  }

  private func end(at now: ContinuousClock.Instant, sum: Int64) {
    let outage = state.withLock { state -> Outage? in
      let begin = state.since ?? state.failed ?? state.moved
      let wasTold = state.told != nil
      state = State(moved: now, sum: sum)
      if !wasTold { return nil }
      let away = now - begin
      return Outage(
        host: host, since: Int64(time(nil)) - away.components.seconds,
        text: "\(host) answers again, after \(Quantity.text(away))", isOver: true)
    }
    if let outage { report.outage(outage) }
  }

  /// Grows with all that is progress. Reading back is, too. Sums wrap around, since servers' offsets are in them.
  private var moved: Int64 {
    counters.bytes.sent &+ counters.bytes.acknowledged &+ counters.comparedBytes.load(ordering: .relaxed)
      &+ Int64(counters.filesThere)
  }
}

extension PushCounters {
  fileprivate var filesThere: Int {
    filesSent.load(ordering: .relaxed) + filesAlreadyThere.load(ordering: .relaxed)
      + filesDoneBefore.load(ordering: .relaxed)
  }

  /// Files were found that are not settled, and this process is to send them.
  fileprivate var isWaiting: Bool {
    !waitsForOthers.load(ordering: .relaxed)
      && filesFound.load(ordering: .relaxed) > filesThere + filesFailed.load(ordering: .relaxed)
  }
}

extension UploadError {
  /// Nobody answered, or someone did in place of the server.
  fileprivate var isOfOutage: Bool {
    if let status { return [502, 503, 504].contains(status) }
    guard let code = (cause as? TransportError)?.code else { return false }
    return [.resolve, .connect, .broken, .timeout].contains(code)
  }

  /// Of `PUT http://nas/a: connection refused (nas:80)` what is wrong.
  fileprivate var reason: String {
    let words = message.firstRange(of: ": ").map { message[$0.upperBound...] } ?? message[...]
    if words.hasSuffix(")"), let bracket = words.firstRange(of: " ("), bracket.lowerBound > words.startIndex {
      return String(words[..<bracket.lowerBound])
    }
    return String(words)
  }
}

/// `14:03:22`, by the clock of this machine.
private func clockTime(_ seconds: Int64) -> String {
  var (seconds, parts) = (time_t(seconds), tm())
  localtime_r(&seconds, &parts)
  return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
}
