import BlobServer
import Blobs
import Platform

/// Writes a line for each answered request, on a thread of its own. Requests wait for nothing: if the file takes no
/// lines, a limited number waits here, and further ones are dropped and counted.
final class AccessLog: Sendable {
  private let queue = BoundedQueue<AnsweredRequest>(atMost: 10_000, size: 4 << 20)
  private let file: LogFile
  private let format: LogFormat
  private let notice: @Sendable (String) -> Void

  /// How often lost lines are reported.
  private static let pause = Duration.seconds(60)

  /// `notice`: gets lines for the operator, on the thread of the log.
  init(_ file: LogFile, _ format: LogFormat, notice: @escaping @Sendable (String) -> Void) {
    (self.file, self.format, self.notice) = (file, format, notice)
    SystemThread.start("fullbore-log") { self.run() }
  }

  /// Never waits for the file.
  func add(_ request: AnsweredRequest) {
    let size = request.path.bytes.count + request.method.utf8.count + (request.client.agent?.utf8.count ?? 0)
    queue.add(request, size: size)
  }

  /// Opens the file again, after another program has renamed it.
  func reopen() { queue.wake() }

  /// Blocks until all lines are written, `limit` at most. Call once, after the server has stopped.
  func finish(within limit: Duration) {
    if queue.finish(within: limit) { return }
    file.abandon()
    notice("the log takes no more lines: the last ones were not written")
  }

  private func run() {
    var losses = Losses()
    while true {
      let batch = queue.next()
      if batch.isWoken, !file.reopen() {
        notice("the log cannot be opened again, and the old file stays in use: \(String(cString: strerror(errno)))")
      }
      losses.count += batch.dropped
      if batch.dropped > 0 { losses.reason = "requests came faster than lines were written" }
      write(batch.items, &losses)
      losses.tell(atMostEvery: batch.isEnding ? .zero : Self.pause, notice)
      if batch.isEnding, batch.items.isEmpty { break }
    }
    queue.end()
  }

  private func write(_ requests: [AnsweredRequest], _ losses: inout Losses) {
    for start in stride(from: 0, to: requests.count, by: 256) {
      let lines = requests[start..<min(start + 256, requests.count)].map { Array("\(format.line($0))\n".utf8) }
      let written = file.write(Array(lines.joined()))
      let problem = errno
      var end = 0
      let lost = lines.count { line in
        end += line.count
        return end > written
      }
      if lost == 0 { continue }
      losses.count += lost
      losses.reason = String(cString: strerror(problem))
    }
  }

  /// Lines that were not written, and when the operator was last told of some.
  private struct Losses {
    var count = 0
    var reason = ""
    private var reported: ContinuousClock.Instant?

    mutating func tell(atMostEvery pause: Duration, _ notice: (String) -> Void) {
      if count == 0 { return }
      if let reported, .now - reported < pause { return }
      notice("\(Quantity.plural(count, "line")) of the log \(count == 1 ? "is" : "are") lost: \(reason)")
      (count, reported) = (0, .now)
    }
  }
}
