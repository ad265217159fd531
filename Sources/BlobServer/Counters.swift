import Synchronization

/// Counts what the server does since it was started. Each number is atomic, so that counting costs next to nothing.
final class Counters: Sendable {
  /// Requests that have not been answered yet.
  let requests = Atomic(0)
  /// Requests in progress that count as visits; see `Server.Activity`.
  let visiting = Atomic(0)
  /// Answered requests that counted as visits.
  let visits = Counter()
  /// Bytes that clients have sent.
  let bytesReceived = Counter()
  /// Bytes of responses.
  let bytesSent = Counter()
  /// Files and ranges of files that were sent to clients.
  let filesSent = Counter()
  /// Open connections.
  let connections = Counter()
  let uploads = UploadCounters()
  let cutDownloads = CutDownloads()
  /// Answered requests by the first digit of their status, from 1 on.
  let answers = (1...5).map { _ in Counter() }
  /// Durations of answered requests.
  let durations = DurationHistogram()

  func answered(_ status: Int, in duration: Duration) {
    answers[min(5, max(1, status / 100)) - 1].add(1)
    durations.add(duration)
  }
}

/// Counts uploads, whatever their protocol. The parts of an upload that is put together from parts are not uploads of
/// their own here.
final class UploadCounters: Sendable {
  let begun = Counter()
  /// Uploads that were published, also if the same file was there already.
  let finished = Counter()
  /// Uploads that ended without a file: refused, interrupted without a way to resume, or terminated by the client.
  let failed = Counter()
  let lost = LostUploads()
  /// The uploads whose bytes are arriving.
  let active = ActiveUploads()
  /// Uploads that expired, with their parts.
  let expired = Counter()
  /// Bytes of the published files.
  let bytes = Counter()

  func began(_ record: UploadRecord) { if !record.isPart { begun.add(1) } }

  func failed(_ record: UploadRecord, received: Int64) {
    if !record.isPart { failed(at: record.target, received: received, length: record.length) }
  }

  /// `received`: the bytes that had arrived. `length`: of the whole file; nil: it is not known.
  func failed(at path: ServedPath, received: Int64, length: Int64?) {
    failed.add(1)
    lost.note(path, received: received, length: length)
  }

  func finished(_ file: ReceivedFile) {
    finished.add(1)
    bytes.add(file.length)
  }
}

/// Counts durations by a few upper bounds, as Prometheus' histograms do.
final class DurationHistogram: Sendable {
  /// Upper bounds in seconds; longer durations are in the last bucket, which has no bound.
  static let bounds = ["0.01", "0.1", "1", "10", "100"]
  private static let limits: [Duration] = [
    .milliseconds(10), .milliseconds(100), .seconds(1), .seconds(10), .seconds(100),
  ]
  /// For each bound, and for all longer durations, how many belong there and not to the bucket before.
  let buckets = (0...bounds.count).map { _ in Counter() }
  let nanoseconds = Counter()

  func add(_ duration: Duration) {
    buckets[Self.limits.firstIndex { duration <= $0 } ?? Self.limits.count].add(1)
    nanoseconds.add(duration.nanoseconds)
  }
}

/// An atomic number.
final class Counter: Sendable {
  private let number = Atomic<Int64>(0)

  func add(_ more: Int64) { number.add(more, ordering: .relaxed) }

  func load() -> Int64 { number.load(ordering: .relaxed) }
}
