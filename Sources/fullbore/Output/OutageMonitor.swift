import BlobHTTP
import BlobUpload
import Blobs
import Platform
import Synchronization

/// A period in which a destination, or the server of a source, does not respond; or its end.
struct Outage: Sendable, Hashable {
  /// `host:port` of the server that does not respond. Several servers of sources are separated by commas.
  var host: String
  /// Seconds since 1970.
  var since: Int64
  /// What is wrong, or that it is over, for people.
  var what: String
  /// A request has failed, and is made again.
  var isTriedAgain = false
  /// Time until the next attempt; nil if none is scheduled.
  var retry: Duration?
  var isOver = false
  /// The HTTP status of the last failure; nil: there was no response.
  var status: Int?

  /// What is wrong, with the next attempt.
  var text: String {
    guard isTriedAgain else { return what }
    return what + ", trying again" + (retry.map { " in \(Quantity.text(whole: $0))" } ?? "")
  }
}

/// Receives the outages of an `OutageMonitor`, and presents them to the user. Thread-safe.
protocol OutageReport: Sendable {
  /// A server does not respond, or responds again. Shown unless `--quiet`. While an outage lasts, this is called once in
  /// `outageInterval`.
  func outage(_ outage: Outage)
  var outageInterval: Duration { get }
}

extension OutageReport {
  var outageInterval: Duration { .seconds(20) }
}

/// Reports that a destination, or the server of a source, does not respond: at the beginning, periodically while it
/// lasts, and at its end.
final class OutageMonitor: Sendable {
  /// Shorter outages are not reported.
  static let patience = Duration.seconds(2)
  /// The limit without a failed request: the server may be busy with what it has received.
  static let longPatience = Duration.seconds(5)

  private struct State {
    /// When progress was last made, and the sum of `moved` at that time.
    var moved = ContinuousClock.now
    var sum: Int64 = -1
    /// The first failure since then.
    var failed: ContinuousClock.Instant?
    var reason = ""
    /// When the next attempt begins.
    var next: ContinuousClock.Instant?
    var reported: ContinuousClock.Instant?
    /// The begin of the outage as reported first. The server may stall for long before a request fails.
    var since: Begin?
    /// The server itself asked to wait.
    var isAsked = false
    /// The status of the last failure if it was a response, of the server or of a proxy in its place.
    var status: Int?
    /// Servers of sources that were reported as silent; empty if only the destination was reported.
    var silent: [String] = []
    /// The destination was reported together with them.
    var namesDestinationToo = false
    /// The destination was asked for its protocol and has not responded yet.
    var isDiscovering = false
  }
  private struct Begin {
    var instant: ContinuousClock.Instant
    /// Seconds since 1970, the same in all messages about one outage.
    var seconds: Int64
  }
  private let state = Mutex(State())
  private let host: String
  /// Servers of sources that may be the ones that do not respond.
  let sources: SourceWaits
  private let report: any OutageReport
  private let counters: PushCounters
  /// A command that restores files may wait for its own disk, so that only a failed request begins an outage.
  private let onlyTellsFailures: Bool
  private let ticker = Mutex<Ticker?>(nil)

  init(
    _ endpoint: HTTPURL, _ report: any OutageReport, _ counters: PushCounters, sources: SourceWaits = SourceWaits(),
    onlyTellsFailures: Bool = false
  ) {
    (self.report, self.counters, self.sources) = (report, counters, sources)
    self.onlyTellsFailures = onlyTellsFailures
    host = "\(endpoint.host):\(endpoint.port)"
  }

  /// Checks periodically from now on, until `stop`.
  func start() {
    let ticker = Ticker { [weak self] in self?.look() }
    self.ticker.withLock { $0 = ticker }
  }

  /// Ends the checks. An outage that was reported and has ended since the last check is still reported as over.
  func stop(at now: ContinuousClock.Instant = .now) {
    ticker.withLock { $0.take() }?.stop()
    let sum = moved
    if state.withLock({ $0.sum != sum }) { end(at: now, sum: sum) }
  }

  /// Records that an attempt has failed and the next one follows after `wait`. Thread-safe.
  func failed(_ error: UploadError, next wait: Duration, at now: ContinuousClock.Instant = .now) {
    var isAsked = false
    if case .retry(_?) = error.recovery { isAsked = true }
    guard error.isOfOutage || isAsked else { return }
    // Bytes that were sent before the failure do not end the outage.
    let sum = moved
    state.withLock { state in
      if state.failed == nil {
        state.failed = now
        if state.reported == nil { state.sum = sum }
      }
      (state.reason, state.isAsked, state.status) = (error.reason, isAsked, error.status)
      // Many files wait concurrently, each for its own time; the earliest attempt counts.
      if state.next.map({ $0 <= now || now + wait < $0 }) ?? true { state.next = now + wait }
    }
  }

  /// Records that an upload was given up. If the server has refused it, the server has answered, so an outage is over.
  /// Thread-safe.
  func gaveUp(_ error: UploadError, at now: ContinuousClock.Instant = .now) {
    guard error.side != .source, error.status != nil, !error.isOfOutage else { return }
    end(at: now, sum: moved)
  }

  /// `failed` as a closure, for `Uploader.retrying` and `UploadDestination.discover`.
  var noteRetry: @Sendable (UploadError, Duration) -> Void {
    { [self] error, wait in failed(error, next: wait) }
  }

  /// Records that the destination is being asked for its protocol, until `answered` is called.
  func discovering(at now: ContinuousClock.Instant = .now) {
    let sum = moved
    state.withLock { state in
      state.isDiscovering = true
      // An outage that was reported continues.
      if state.reported == nil { (state.moved, state.sum) = (now, sum) }
    }
  }

  /// Records that the destination has responded, although no upload may have begun.
  func answered(at now: ContinuousClock.Instant = .now) {
    end(at: now, sum: moved)
    state.withLock { $0.isDiscovering = false }
  }

  /// Compares the progress with that of the previous call.
  func look(at now: ContinuousClock.Instant = .now) {
    let sum = moved
    // While standard input has nothing to read, which may be for any time, only a failed request begins an outage.
    let isPipeIdle = sources.awaitsInput(since: now - Self.patience)
    if state.withLock({ $0.sum != sum || isPipeIdle && $0.failed == nil }) { return end(at: now, sum: sum) }
    // A read begins a little after the last byte was sent, so the limit for reads is shorter than `longPatience`.
    let silent = sources.silent(since: now - Self.patience)
    let outage = state.withLock { state -> Outage? in
      let isWaiting = counters.isWaiting && (state.failed != nil || !onlyTellsFailures)
      let isTriedAgain = state.next.map { $0 > now } ?? false
      if !state.isDiscovering, !isWaiting, !isTriedAgain {
        // Nothing is to be sent. A file that comes later waits from then on.
        if state.failed == nil, state.reported == nil { state.moved = now }
        return nil
      }
      let begin = state.failed ?? state.moved
      let isLong = now - begin >= (state.failed == nil ? Self.longPatience : Self.patience)
      guard isLong, state.failed != nil || state.isDiscovering || isWaiting else { return nil }
      if let reported = state.reported, now - reported < report.outageInterval { return nil }
      state.reported = now
      let isOfSources = state.failed == nil && !state.isDiscovering && silent.waits > 0
      state.silent = isOfSources ? silent.hosts : []
      // Open files that do not wait for a source wait for the destination, or for their turn.
      state.namesDestinationToo = isOfSources && counters.files.open > silent.waits
      let since = state.since ?? Begin(instant: begin, seconds: Int64(time(nil)) - (now - begin).components.seconds)
      state.since = since
      return describe(state, since, now)
    }
    if let outage { report.outage(outage) }
  }

  private func describe(
    _ state: State, _ begin: Begin, _ now: ContinuousClock.Instant
  ) -> Outage {
    let since = begin.seconds
    var outage = Outage(host: host, since: since, what: "")
    if state.failed == nil {
      let sent = counters.large.waitingForAnswer
      let waited = "since \(LocalTime.text(since, "%H:%M:%S")) (\(Quantity.text(now - begin.instant)))"
      if state.isDiscovering {
        outage.what = "\(host) has not answered yet: waiting \(waited)"
      } else if !state.silent.isEmpty {
        outage.host = hosts(state)
        outage.what =
          "nothing has moved \(waited): waiting for \(state.silent.count == 1 ? "a source" : "sources") at "
          + Self.names(state.silent) + (state.namesDestinationToo ? ", or for \(host)" : "")
      } else if let first = sent.first {
        // A server may need long to join parts, or to write a large file to its disk.
        let what = sent.count == 1 ? shown(first) : Quantity.plural(sent.count, "file")
        outage.what =
          "all bytes of \(what) are sent: waiting \(waited) for \(host) to "
          + "confirm \(sent.count == 1 ? "it" : "them")"
      } else {
        outage.what = "nothing has moved \(waited): waiting for \(host)"
      }
    } else {
      outage.what =
        state.isAsked
        ? "\(host) asks to be left alone for a while (\(state.reason))"
        : "\(host) \(state.status != nil ? "is not ready" : "does not answer") since \(LocalTime.text(since, "%H:%M:%S")) (\(state.reason))"
      (outage.isTriedAgain, outage.status) = (true, state.status)
      if let next = state.next, next > now { outage.retry = next - now }
    }
    return outage
  }

  private func end(at now: ContinuousClock.Instant, sum: Int64) {
    let outage = state.withLock { state -> Outage? in
      let before = state
      state = State(moved: now, sum: sum, isDiscovering: before.isDiscovering)
      // Only an outage that was reported can be over.
      guard let begin = before.since else { return nil }
      let away = now - begin.instant
      var outage = Outage(host: host, since: begin.seconds, what: "", isOver: true)
      var what = "\(host) answers again"
      if !before.silent.isEmpty {
        outage.host = hosts(before)
        let back = sources.answered(before.silent, after: begin.instant)
        // Other files may have made progress without the silent sources, or reads of those have failed.
        what =
          back.isEmpty
          ? "bytes move again" : "\(Self.names(back)) answer\(back.count == 1 ? "s" : "") again"
      } else if before.isDiscovering, before.failed == nil {
        what = "\(host) has answered"
      }
      outage.what = "\(what), after \(Quantity.text(away))"
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

  /// A sum that grows with every kind of progress, including reading back, and reading standard input. It wraps around,
  /// because it contains offsets from servers.
  private var moved: Int64 {
    counters.bytes.sent &+ counters.bytes.acknowledged &+ counters.comparedBytes.load(ordering: .relaxed)
      &+ Int64(counters.files.there) &+ sources.inputReads
  }
}

extension PushCounters {
  /// There are unfinished files, and this process is to send them.
  fileprivate var isWaiting: Bool { !waitsForOthers.load(ordering: .relaxed) && files.open > 0 }
}

extension UploadError {
  /// The server did not respond, or a proxy responded in its place.
  var isOfOutage: Bool {
    if let status { return [502, 503, 504].contains(status) }
    guard let code = (cause as? TransportError)?.code else { return false }
    return [.resolve, .connect, .broken, .timeout].contains(code)
  }

  /// The cause in a message such as `PUT http://nas/a: connection refused (nas:80)`.
  fileprivate var reason: String {
    let words = message.firstRange(of: ": ").map { message[$0.upperBound...] } ?? message[...]
    if words.hasSuffix(")"), let bracket = words.firstRange(of: " ("), bracket.lowerBound > words.startIndex {
      return String(words[..<bracket.lowerBound])
    }
    return String(words)
  }
}
