import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// The progress of a film over a slow connection is reported in a million pieces, on a thread with a small stack. The
/// last report must need no more stack and memory than the first.
@Suite(.serialized) struct ManyReportsTests {
  private static let reports = 1_000_000

  @Test func theSentOffsetIsReportedAMillionTimes() async throws {
    let gauge = StackGauge()
    let tracker = SendingLedger { gauge.note($0) }.tracker()
    tracker.noteSending(from: 0)
    try await repeated { _ in tracker.sent(1) }
    #expect(gauge.last == Int64(Self.reports))
    #expect(gauge.depth < 4096, "\(gauge.depth) bytes of stack")
  }

  @Test func progressIsReportedAMillionTimes() async throws {
    let totals = UploadTotals()
    let whole = UploadProgress(totals: totals)
    let part = UploadProgress(partOf: whole)
    try await repeated { number in
      part.advance(by: 2)
      part.acknowledge(1, sent: 2)
      whole.settle(at: Int64(number))
    }
    #expect(totals.sent == 2 * Int64(Self.reports))
  }

  @Test func aCancellationIsWaitedForAMillionTimes() async throws {
    let (cancellation, gauge) = (Cancellation(), StackGauge())
    try await repeated { _ in cancellation.whileWaiting(wakeUp: { gauge.note(1) }) { gauge.note(0) } }
    cancellation.cancel()
    #expect(gauge.depth < 4096 && gauge.last == 0)
  }

  /// Sent bytes are reported through the closures of a protocol's context, which are created once.
  @Test func anExchangeReportsSentBytesAMillionTimes() async throws {
    let (gauge, progress) = (StackGauge(), UploadProgress())
    let tracker = SendingLedger { gauge.note($0) }.tracker(progress)
    tracker.noteSending(from: 0)
    let context = UploadContext(
      transport: Script(.status(200)), endpoint: host, traits: UploadTraits(), events: tracker)
    let exchange = context.counting(SentCounter())
    try await repeated { _ in exchange.sent(1) }
    #expect(progress.sent == Int64(Self.reports) && gauge.last == progress.sent && gauge.depth < 4096)
  }

  /// Every block of a traced source is recorded in a file next to the journal.
  @Test func theLogRecordsSentBlocksAMillionTimes() async throws {
    let folder = try ScratchFolder()
    let log = SentLog(beside: folder.path.appending("journal"))
    log.start(as: 1)
    let keep = log.begin(7, from: 0, key: [UInt8](repeating: 1, count: 32))
    try await repeated { number in keep(Int64(number), SentRange.noValue) }
    #expect(log.range(of: 7)?.end == Int64(Self.reports - 1))
  }

  /// Runs on a thread with a stack of 64 KiB, which is enough for a few hundred nested calls.
  private func repeated(_ report: @escaping @Sendable (Int) -> Void) async throws {
    let before = residentBytes()
    await withCheckedContinuation { done in
      SystemThread.start("reports", stack: 64 << 10) {
        for number in 0..<Self.reports { report(number) }
        done.resume()
      }
    }
    let after = residentBytes()
    #expect(after < before + 24 << 20, "\(after) bytes are in memory, and were \(before)")
  }

  /// The second number of /proc/self/statm, see proc(5).
  private func residentBytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    let count = fread(&line, 1, line.count - 1, file)
    let text = String(decoding: line.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return (Int(text.split(separator: " ").dropFirst().first ?? "") ?? 0) * Int(getpagesize())
  }
}

/// Measures how much deeper the stack was at later reports than at the first one.
private final class StackGauge: Sendable {
  private let first = Atomic<Int>(0)
  private let lowest = Atomic<Int>(.max)
  private let told = Atomic<Int64>(-1)

  var last: Int64 { told.load(ordering: .relaxed) }
  /// `Int.max` if there was no report.
  var depth: Int { last < 0 ? .max : first.load(ordering: .relaxed) - lowest.load(ordering: .relaxed) }

  func note(_ value: Int64) {
    var mark: UInt8 = 0
    let address = withUnsafeMutablePointer(to: &mark) { Int(bitPattern: $0) }
    _ = first.compareExchange(expected: 0, desired: address, ordering: .relaxed)
    lowest.min(address, ordering: .relaxed)
    told.store(value, ordering: .relaxed)
  }
}
