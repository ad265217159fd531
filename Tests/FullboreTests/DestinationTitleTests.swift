import BlobHTTP
import BlobUpload
import Testing

@testable import fullbore

/// Tests lines that `push` prints: about one of several destinations, files of unknown length, an outage, and a refusal.
@Suite struct DestinationTitleTests {
  @Test func thePrefixOfAPlaceHasOneColon() {
    let parts = ["archive:", "nas"].map { PushSummary.Part(title: $0, url: "http://host/", summary: PushSummary()) }
    let lines = PushSummary().adding(parts).lines
    #expect(lines[0].hasPrefix("archive: 0 files") && lines[1].hasPrefix("nas: 0 files"), "\(lines)")
  }

  @Test func anUnknownLengthIsNoLengthOfZero() {
    let counters = PushCounters()
    counters.found(length: nil)
    var summary = PushSummary(files: counters.files, isDryRun: true)
    #expect(summary.text.hasPrefix("1 file, of unknown length: nothing was sent"), "\(summary.text)")
    counters.found(length: 1024)
    summary.files = counters.files
    #expect(summary.text.hasPrefix("2 files, 1.00 KiB and 1 file of unknown length: "), "\(summary.text)")
  }

  @Test func theStatusOfAnOutageIsTold() throws {
    let (notes, counters, began) = (Notes(), PushCounters(), ContinuousClock.now)
    let watch = OutageMonitor(try #require(HTTPURL("http://media.example/")), notes, counters)
    counters.found(length: 9)
    let failure = UploadError(.retry(after: nil), .destination, "PUT http://media.example/a: 503", status: 503)
    watch.failed(failure, next: .seconds(9), at: began + .seconds(1))
    watch.look(at: began + .seconds(4))
    #expect(notes.last?.status == 503, "\(notes.outages)")
  }

  /// No other name changes the id of the group.
  @Test func theAdviceForAGroupNamesNoOptionForNames() throws {
    let error = UploadError(
      .giveUp, .file, "PUT http://nas/a: 409: other files wait in the group 7, or another number of them", status: 409)
    let advice = try #require(error.advice(goesOn: true))
    #expect(!advice.contains("--on-conflict") && advice.contains("once the files that wait there"), "\(advice)")
  }
}
