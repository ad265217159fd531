import Blobs
import Synchronization
import Testing

@testable import BlobUpload
@testable import fullbore

@Suite struct DailySummaryTests {
  private let counters = PushCounters()
  private let notes = Notes()

  private func send(_ count: Int) {
    for _ in 0..<count {
      counters.found(length: 1 << 20)
      let file = PushedFile(
        path: "/a", relative: "a", length: 1 << 20, progress: UploadProgress(totals: counters.bytes))
      file.progress.advance(by: 1 << 20)
      counters.finished(file, how: .sent(bytes: 1 << 20, resumedFrom: 0))
    }
  }

  @Test func eachDayIsReportedOnceItHasEnded() {
    let summary = DailySummary(notes, counters, today: "2026-11-27")
    defer { summary.stop() }
    send(3)
    for _ in 0..<3 { summary.look(today: "2026-11-27") }
    #expect(notes.notices == [])
    summary.look(today: "2026-11-28")
    summary.look(today: "2026-11-28")
    #expect(notes.notices == ["2026-11-27: 3 files sent, 3.00 MiB"])
    send(1)
    counters.found(length: 7)
    counters.failed(length: 7)
    counters.found(length: 8)
    summary.look(today: "2026-11-29")
    summary.look(today: "2026-11-30")
    #expect(
      notes.notices.dropFirst() == [
        "2026-11-28: 1 file sent, 1.00 MiB; 1 failed; 1 file still to be sent",
        "2026-11-29: 0 files sent; 1 file still to be sent",
      ])
  }
}
