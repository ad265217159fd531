import BlobTesting

@testable import BlobClient

@testable import BlobHTTP

/// A simulated link and server: requests share it as connections share a link. The same seed gives the same run.
struct SimulatedLink {
  /// Bytes a second in total, and at most for one connection.
  var rate: Double
  var rateOfOne = Double.infinity
  /// In seconds.
  var roundTrip: Double
  /// Seconds that the server needs for a request, and the number of requests that it processes at once.
  var service = 0.0
  var servesAtOnce = Int.max
  /// Requests beyond this number of active ones are refused with 503.
  var refusesFrom = Int.max
  /// From second `at` on, the values are as given here.
  var changes: [(at: Double, rate: Double)] = []
}

/// The results of a run over such a link.
struct LinkRun {
  /// Bytes that had left the link, at each event.
  var passed: [(at: Double, bytes: Double)] = [(0, 0)]
  /// The number of successful requests.
  var ended = 0
  /// The times of changes, and the new concurrency.
  var widths: [(at: Double, width: Int)] = []
  var refusals: [Double] = []
  var mostUnderWay = 0
  var width: ConcurrencyController

  /// Bytes a second through the link between two times.
  func goodput(_ from: Double, _ to: Double) -> Double { (through(to) - through(from)) / (to - from) }

  private func through(_ time: Double) -> Double {
    var (low, high) = (0, passed.count - 1)
    while high - low > 1 {
      let middle = (low + high) / 2
      if passed[middle].at <= time { low = middle } else { high = middle }
    }
    let (a, b) = (passed[low], passed[high])
    return b.at > a.at ? a.bytes + (b.bytes - a.bytes) * (time - a.at) / (b.at - a.at) : b.bytes
  }

  func widths(_ from: Double, _ to: Double) -> ClosedRange<Int> {
    let before = widths.last { $0.at <= from }.map { [$0.width] } ?? []
    let all = before + widths.filter { from < $0.at && $0.at <= to }.map(\.width)
    return all.min()!...all.max()!
  }
}

extension SimulatedLink {
  /// An active request.
  private struct Flight {
    enum Stage { case sending, waiting, served }
    var stage = Stage.sending
    let began: Double
    let bytes: Int64
    var left: Double
    /// When the current stage ends, if that is known.
    var due = Double.infinity
    var isRefused = false
    /// For a long body: when its last piece began, and the bytes not reported yet.
    var pieceBegan: Double
    var untold: Int64
  }

  private static let piece: Int64 = 4 << 20

  /// Sends requests for `seconds` with the concurrency of `width`. `size` returns the bytes of the next body for a
  /// random number.
  func run(_ width: ConcurrencyController, for seconds: Double, seed: UInt64, size: (UInt64) -> Int64) -> LinkRun {
    var run = LinkRun(widths: [(0, width.width)], width: width)
    var random = SplitMix64(seed: seed)
    var rate = rate
    var changes = changes[...]
    var flights: [Flight] = []
    var (now, nextStill, lastTaken, taken) = (0.0, 0.005, -1, 0)
    // As with any client, refused requests are sent again after a while, here as new ones.
    func jitter() -> Double { 0.9 + 0.2 * Double(random.next() >> 11) / Double(1 << 53) }
    func note() {
      if run.widths.last!.width != run.width.width { run.widths.append((now, run.width.width)) }
    }
    while now < seconds {
      while flights.count < run.width.width {
        let bytes = size(random.next())
        taken += 1
        var flight = Flight(began: now, bytes: bytes, left: Double(bytes), pieceBegan: now, untold: bytes)
        if flights.count >= refusesFrom {
          flight.isRefused = true
          (flight.stage, flight.due) = (.served, now + roundTrip * jitter())
        }
        flights.append(flight)
        run.mostUnderWay = max(run.mostUnderWay, flights.count)
      }
      let sending = flights.reduce(0) { $0 + ($1.stage == .sending ? 1 : 0) }
      let each = min(rateOfOne, rate / Double(max(1, sending)))
      var next = min(seconds, changes.first?.at ?? .infinity)
      if run.width.mayLeap { next = min(next, nextStill) }
      for flight in flights {
        next = min(next, flight.stage == .sending ? now + max(flight.left, 0.1) / each : flight.due)
        let inPiece = Double(2 * Self.piece - flight.untold) + flight.left
        if flight.stage == .sending, flight.untold >= 2 * Self.piece { next = min(next, now + (inPiece + 1) / each) }
      }
      run.passed.append((next, run.passed.last!.bytes + each * Double(sending) * (next - now)))
      for index in flights.indices where flights[index].stage == .sending {
        flights[index].left -= each * (next - now)
        let sent = flights[index].bytes - Int64(max(0, flights[index].left))
        let told = flights[index].bytes - flights[index].untold
        if sent - told >= 2 * Self.piece {
          tell(&run, Self.piece, from: flights[index].pieceBegan, at: next, flights.count)
          flights[index].untold -= Self.piece
          flights[index].pieceBegan = next
        }
      }
      now = next
      if let change = changes.first, change.at <= now {
        rate = change.rate
        changes = changes.dropFirst()
      }
      if run.width.mayLeap, nextStill <= now {
        if taken == lastTaken {
          run.width.still(underWay: flights.reduce(0) { $0 + min($1.bytes, ConcurrencyController.mostCounted) })
        }
        lastTaken = taken
        nextStill = now + 0.005
      }
      for index in flights.indices where flights[index].stage == .sending && flights[index].left < 0.5 {
        flights[index].stage = .waiting
        flights[index].due = .infinity
      }
      var serving = flights.reduce(0) { $0 + ($1.stage == .served && !$1.isRefused ? 1 : 0) }
      for index in flights.indices where flights[index].stage == .waiting && serving < servesAtOnce {
        serving += 1
        flights[index].stage = .served
        flights[index].due = now + (roundTrip + service) * jitter()
      }
      var index = 0
      while index < flights.count {
        let flight = flights[index]
        guard flight.stage == .served, flight.due <= now else {
          index += 1
          continue
        }
        if flight.isRefused {
          run.refusals.append(now)
          run.width.refused(from: .seconds(flight.began), at: .seconds(now))
        } else {
          run.ended += 1
          tell(&run, flight.untold, from: flight.pieceBegan, at: now, flights.count)
        }
        flights.remove(at: index)
      }
      note()
    }
    return run
  }

  private func tell(_ run: inout LinkRun, _ bytes: Int64, from began: Double, at now: Double, _ active: Int) {
    run.width.arrived(bytes, from: .seconds(began), to: .seconds(now), active: active, isWanted: true)
  }
}
