import BlobUpload
import Blobs
import Testing

@testable import fullbore

/// Totals of lengths reported by servers, clocks and the command line: an overflowing sum must not end the process.
@Suite struct CounterTests {
  @Test func lengthsMayAddUpPastAnyNumber() {
    let counters = PushCounters()
    let file = PushedFile(path: "/a", relative: "a", length: 1 << 62)
    for _ in 0..<3 {
      counters.found(length: 1 << 62)
      counters.finished(file, how: .sent(bytes: 1 << 62, resumedFrom: 0))
      counters.failed(length: 1 << 62)
    }
    #expect(counters.files.foundBytes == .max)
    #expect(counters.files.settledBytes == .max)
    for _ in 0..<3 { counters.withdrawn(length: 1 << 62) }
    #expect(
      finishedLine(
        PushedFile(path: "/a", relative: "a", length: nil),
        .sent(bytes: .max, resumedFrom: .max), OutputOptions()) != nil)
  }

  @Test(arguments: [0, 1, -1, Int64.max, .min]) func aSpeedOrATimeOfAnySizeIsShown(_ number: Int64) {
    #expect(!Quantity.text(bytes: number).isEmpty)
    for value in [Double(number), Double(number) * 1e10, .nan, .infinity, -.infinity, 1e-300] {
      #expect(!Quantity.text(bytesPerSecond: value).isEmpty)
      #expect(!Quantity.text(seconds: value).isEmpty)
    }
    #expect(!Quantity.text(.seconds(number)).isEmpty)
    #expect(!Quantity.age(seconds: number).isEmpty)
    var summary = PushSummary()
    (summary.bytesSent, summary.elapsed) = (number, .nanoseconds(1))
    #expect(!summary.text.isEmpty && Int64(clamped: summary.bytesPerSecond) >= .min)
  }
}
