import BlobHTTP
import BlobUpload
import Blobs
import Platform
import Synchronization

/// A destination, or the server of a source, that does not answer or that answers again.
struct Outage: Sendable, Hashable {
  /// `host:port` of the one that does not answer. Several servers of sources are separated by commas.
  var host: String
  /// Seconds since 1970.
  var since: Int64
  /// For people.
  var text: String
  /// Until the next try; nil: none is waited for.
  var retry: Duration?
  var isOver = false
}

/// Says that a destination, or the server of a source, does not answer: once at the beginning, now and then while it
/// lasts, and at its end.
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
    /// The servers of sources that were said to be silent; empty: only the destination was.
    var silent: [String] = []
    /// The destination was named beside them.
    var namesDestinationToo = false
    /// The destination was asked how it takes uploads, and has not answered yet.
    var isDiscovering = false
  }
  private let state = Mutex(State())
  private let host: String
  /// Servers of sources that may be the ones that do not answer.
  let sources = SourceWaits()
  private let report: any PushReport
  private let counters: PushCounters
  private let ticker = Mutex<Ticker?>(nil)

  init(_ endpoint: HTTPURL, _ report: any PushReport, _ counters: PushCounters) {
    host = "\(endpoint.host):\(endpoint.port)"
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

  /// The destination is asked how it takes uploads, from now until `answered`.
  func discovering(at now: ContinuousClock.Instant = .now) {
    let sum = moved
    state.withLock { state in
      state.isDiscovering = true
      // An outage that was told goes on.
      if state.told == nil { (state.moved, state.sum) = (now, sum) }
    }
  }

  /// The destination has answered, though nothing may be sent yet.
  func answered(at now: ContinuousClock.Instant = .now) {
    end(at: now, sum: moved)
    state.withLock { $0.isDiscovering = false }
  }

  /// Compares with what had moved before.
  func look(at now: ContinuousClock.Instant = .now) {
    let sum = moved
    if state.withLock({ $0.sum != sum }) { return end(at: now, sum: sum) }
    // A read begins a little after the last byte was sent, so that less than `longPatience` is asked of it.
    let silent = sources.silent(since: now - Self.patience)
    let outage = state.withLock { state -> Outage? in
      let begin = state.failed ?? state.moved
      let isLong = now - begin >= (state.failed == nil ? Self.longPatience : Self.patience)
      guard isLong, state.failed != nil || state.isDiscovering || counters.isWaiting else { return nil }
      if let told = state.told, now - told < Self.interval { return nil }
      state.told = now
      let isOfSources = state.failed == nil && !state.isDiscovering && silent.waits > 0
      state.silent = isOfSources ? silent.hosts : []
      // Files for which no source is waited for wait for the destination, or for their turn.
      state.namesDestinationToo = isOfSources && counters.filesOpen > silent.waits
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
      let waited = "since \(clockTime(since)) (\(Quantity.text(now - begin)))"
      if state.isDiscovering {
        outage.text = "\(host) has not answered yet: waiting \(waited)"
      } else if !state.silent.isEmpty {
        outage.host = hosts(state)
        outage.text =
          "nothing has moved \(waited): waiting for \(state.silent.count == 1 ? "a source" : "sources") at "
          + Self.names(state.silent) + (state.namesDestinationToo ? ", or for \(host)" : "")
      } else if let first = sent.first {
        // A server may take long to join parts, or to bring a film to its disk.
        let what = sent.count == 1 ? shown(first) : Quantity.plural(sent.count, "file")
        outage.text =
          "all bytes of \(what) are sent: waiting \(waited) for \(host) to "
          + "confirm \(sent.count == 1 ? "it" : "them")"
      } else {
        outage.text = "nothing has moved \(waited): waiting for \(host)"
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
      let before = state
      state = State(moved: now, sum: sum, isDiscovering: before.isDiscovering)
      if before.told == nil { return nil }
      let begin = before.since ?? before.failed ?? before.moved
      let away = now - begin
      var outage = Outage(host: host, since: Int64(time(nil)) - away.components.seconds, text: "", isOver: true)
      var what = "\(host) answers again"
      if !before.silent.isEmpty {
        outage.host = hosts(before)
        let back = sources.answered(before.silent, after: begin)
        // The others may have gone on without those that were silent, or those have failed.
        what =
          back.isEmpty
          ? "bytes move again" : "\(Self.names(back)) answer\(back.count == 1 ? "s" : "") again"
      } else if before.isDiscovering, before.failed == nil {
        what = "\(host) has answered"
      }
      outage.text = "\(what), after \(Quantity.text(away))"
      return outage
    }
    if let outage { report.outage(outage) }
  }

  private func hosts(_ state: State) -> String {
    (state.silent + (state.namesDestinationToo ? [host] : [])).joined(separator: ",")
  }

  private static func names(_ hosts: [String]) -> String {
    let most = 3
    let more = hosts.count > most ? " and \(hosts.count - most) more" : ""
    return hosts.prefix(most).joined(separator: ", ") + more
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
  fileprivate var isWaiting: Bool { !waitsForOthers.load(ordering: .relaxed) && filesOpen > 0 }

  /// Files that were found and are not settled.
  fileprivate var filesOpen: Int {
    filesFound.load(ordering: .relaxed) - filesThere - filesFailed.load(ordering: .relaxed)
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
