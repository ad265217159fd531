import BlobHTTP
import Blobs
import Synchronization
import Testing

@testable import BlobUpload
@testable import fullbore

/// Tests the messages of a push that sends nothing for a while.
@Suite struct OutageMonitorTests {
  private let counters = PushCounters()
  private let notes = Notes()
  private let began = ContinuousClock.now
  private let length: Int64 = 100 << 20

  private func watch(onlyTellsFailures: Bool = false) -> OutageMonitor {
    counters.found(length: length)
    let watch = OutageMonitor(HTTPURL("http://media.example/")!, notes, counters, onlyTellsFailures: onlyTellsFailures)
    watch.look(at: began)
    return watch
  }

  private func film(sent: Int64) -> PushedFile {
    let file = PushedFile(path: "/card/film.mov", relative: "film.mov", length: length)
    counters.large.began(file)
    file.progress.advance(by: sent)
    return file
  }

  @Test func aServerThatTakesNothingIsNamed() {
    let watch = watch()
    _ = film(sent: length - 1)
    watch.look(at: began + .seconds(6))
    #expect(notes.outages.count == 1 && notes.outages.first?.contains("nothing has moved since") == true)
  }

  @Test func aRestoreMayWaitForItsOwnDisk() {
    let watch = watch(onlyTellsFailures: true)
    for second in 0...60 { watch.look(at: began + .seconds(second)) }
    #expect(notes.outages == [])
    watch.failed(UploadError(TransportError(.connect, "GET /a: refused")), next: .seconds(9), at: began + .seconds(60))
    watch.look(at: began + .seconds(63))
    #expect(notes.outages.count == 1, "\(notes.outages)")
  }

  /// A watch may have nothing to send for hours.
  @Test func aTimeWithoutFilesIsNoOutage() {
    let watch = OutageMonitor(HTTPURL("http://media.example/")!, notes, counters)
    for second in 0...600 { watch.look(at: began + .seconds(second)) }
    counters.found(length: length)
    watch.look(at: began + .milliseconds(600_500))
    #expect(notes.outages == [])
    watch.look(at: began + .seconds(606))
    #expect(notes.outages.count == 1 && notes.outages.first?.contains("(6.00 s)") == true, "\(notes.outages)")
  }

  /// A pipe may bring nothing for hours; only a failed request shows that the server is away. `ends`: the run has ended.
  @Test(arguments: [false, true]) func aPipeThatBringsNothingIsNoOutageUntilARequestFails(ends: Bool) {
    let watch = watch()
    _ = watch.sources.begin(SourceWaits.standardInput, at: began)
    for second in 0...600 { watch.look(at: began + .seconds(second)) }
    #expect(notes.outages == [])
    let cause = TransportError(.connect, "PUT http://media.example/a: connection refused (media.example:80)")
    watch.failed(UploadError(cause), next: .seconds(9), at: began + .seconds(601))
    watch.look(at: began + .seconds(604))
    #expect(notes.outages.count == 1 && notes.outages.first?.contains("does not answer") == true, "\(notes.outages)")
    counters.comparedBytes.addClamped(1000)
    ends ? watch.stop(at: began + .seconds(610)) : watch.look(at: began + .seconds(610))
    #expect(notes.outages.last?.contains("answers again") == true, "\(notes.outages)")
  }

  /// A server that refuses a file after its connection broke does answer, and nothing is tried again.
  @Test func aFinalRefusalEndsAnOutage() throws {
    let watch = watch()
    let broken = TransportError(.broken, "PATCH http://media.example/a: the connection broke")
    watch.failed(UploadError(broken), next: .seconds(1), at: began + .seconds(1))
    watch.look(at: began + .seconds(4))
    #expect(notes.outages.last?.contains("does not answer") == true, "\(notes.outages)")
    let refusal = UploadError(
      .giveUp, .file, "HEAD http://media.example/a: 400 (bad request)", status: 400)
    let observer = PushObserver(report: notes, counters: counters, outage: watch)
    observer.ended(item, nil, .failed(refusal))
    for second in 5...100 { watch.look(at: began + .seconds(second)) }
    #expect(
      notes.outages.last?.contains("answers again") == true && notes.outages.count == 2,
      "\(notes.outages)")
  }

  /// A file was given up without an answer, and no other one is there.
  @Test func nothingIsSaidToBeTriedAgainWhereNothingIsToBeSent() {
    let watch = watch()
    let broken = UploadError(
      TransportError(.broken, "PATCH http://media.example/a: the connection broke"))
    watch.failed(broken, next: .seconds(1), at: began + .seconds(1))
    watch.look(at: began + .seconds(4))
    let observer = PushObserver(report: notes, counters: counters, outage: watch)
    observer.ended(item, nil, .failed(UploadError(.giveUp, .file, "the connection broke 8 times")))
    for second in 5...100 { watch.look(at: began + .seconds(second)) }
    #expect(notes.outages.count == 1, "\(notes.outages)")
    // The next file is told of in the same way.
    counters.found(length: length)
    watch.look(at: began + .seconds(130))
    #expect(notes.outages.count == 2, "\(notes.outages)")
  }

  private var item: UploadItem {
    let source = DataSource([1])
    return UploadItem(
      source: source, info: BlobInfo(length: length), identity: "/card/film.mov",
      target: UploadTarget(
        endpoint: HTTPURL("http://media.example/")!, url: HTTPURL("http://media.example/film.mov")!,
        path: "film.mov",
        length: length))
  }

  @Test func readingBackIsProgress() {
    let watch = watch()
    _ = film(sent: length)
    for second in 1...60 {
      counters.comparedBytes.addClamped(1 << 20)
      watch.look(at: began + .seconds(second))
    }
    #expect(notes.outages == [])
  }

  /// The request fails long after its progress has stopped.
  @Test func anOutageBeginsWhenItsProgressStopped() throws {
    let watch = watch()
    watch.look(at: began + .seconds(6))
    let broken = TransportError(.broken, "PUT http://media.example/a: the connection broke")
    watch.failed(UploadError(broken), next: .seconds(1), at: began + .seconds(89))
    counters.comparedBytes.addClamped(1)
    watch.look(at: began + .seconds(90))
    #expect(notes.outages.last?.contains("answers again, after 1:30") == true, "\(notes.outages)")
  }

  @Test func aServerThatAsksToWaitIsSaidToAsk() throws {
    let watch = watch()
    let error = UploadError(
      .retry(after: .seconds(20)), .file, "PUT http://media.example/a: 429 (too many requests)", status: 429)
    watch.failed(error, next: .seconds(20), at: began)
    watch.look(at: began + .seconds(3))
    let said = try #require(notes.outages.first)
    #expect(said.hasPrefix("media.example:80 asks to be left alone for a while (429), "), "\(said)")
    #expect(said.contains("trying again in 17 s"), "\(said)")
  }

  /// The bytes of a request that was refused were sent before the refusal, and do not end the time of waiting.
  @Test func aRefusalAfterSentBytesIsReported() throws {
    let watch = watch()
    counters.comparedBytes.addClamped(1000)
    let error = UploadError(
      .retry(after: .seconds(30)), .file, "PUT http://media.example/a: 507 (insufficient storage)", status: 507)
    watch.failed(error, next: .seconds(30), at: began + .seconds(1))
    for second in 2...4 { watch.look(at: began + .seconds(second)) }
    let said = try #require(notes.outages.first)
    #expect(said.contains("asks to be left alone for a while (507)"), "\(said)")
  }

  @Test func aSilentSourceIsNamedAtTheBeginningAndAtTheEnd() throws {
    let watch = watch()
    let wait = watch.sources.begin("films.example:80", at: began)
    watch.look(at: began + .seconds(6))
    let said = try #require(notes.outages.first)
    #expect(said.hasSuffix(" (6.00 s): waiting for a source at films.example:80"), "\(said)")
    watch.sources.end(wait, hasAnswered: true, at: began + .seconds(8))
    counters.comparedBytes.addClamped(1)
    watch.look(at: began + .seconds(9))
    #expect(notes.outages.last == "films.example:80 answers again, after 9.00 s")
  }

  @Test func aSilentSourceThatFailedDoesNotAnswerAgain() throws {
    let watch = watch()
    let wait = watch.sources.begin("films.example:80", at: began)
    watch.look(at: began + .seconds(6))
    watch.sources.end(wait, hasAnswered: false, at: began + .seconds(8))
    counters.comparedBytes.addClamped(1)
    watch.look(at: began + .seconds(9))
    #expect(notes.outages.last == "bytes move again, after 9.00 s")
  }

  /// The source was queried only recently, so it is not silent, and other files wait for the destination.
  @Test func theDestinationIsNamedWhereNotAllFilesWaitForSources() throws {
    let watch = watch()
    let recent = watch.sources.begin("films.example:80", at: began + .seconds(5))
    watch.look(at: began + .seconds(6))
    #expect(notes.outages.last?.hasSuffix(": waiting for media.example:80") == true, "\(notes.outages)")
    watch.sources.end(recent, hasAnswered: true)
    counters.found(length: nil)
    _ = watch.sources.begin("films.example:80", at: began + .seconds(6))
    watch.look(at: began + .seconds(30))
    let said = try #require(notes.outages.last)
    #expect(said.hasSuffix(": waiting for a source at films.example:80, or for media.example:80"), "\(said)")
  }

  @Test func aDestinationThatIsSilentFromTheBeginningIsNamed() throws {
    let watch = OutageMonitor(HTTPURL("http://media.example/")!, notes, counters)
    watch.discovering(at: began)
    watch.look(at: began + .seconds(4))
    #expect(notes.outages == [])
    watch.look(at: began + .seconds(6))
    let said = try #require(notes.outages.last)
    #expect(said.hasPrefix("media.example:80 has not answered yet: waiting since "), "\(said)")
    watch.answered(at: began + .seconds(7))
    #expect(notes.outages.last == "media.example:80 has answered, after 7.00 s")
    // There are no files to send, so no outage is reported.
    watch.look(at: began + .seconds(60))
    #expect(notes.outages.count == 2)
  }

  @Test func aPipeThatIsIdleIsNoOutage() throws {
    let watch = watch()
    let wait = watch.sources.begin(SourceWaits.standardInput, at: began)
    for second in 1...600 { watch.look(at: began + .seconds(second)) }
    #expect(notes.outages == [])
    watch.sources.end(wait, hasAnswered: true, at: began + .seconds(600))
    watch.look(at: began + .seconds(601))
    watch.look(at: began + .seconds(605))
    #expect(notes.outages == [])
    watch.look(at: began + .seconds(607))
    let said = try #require(notes.outages.last)
    #expect(said.hasSuffix(" (6.00 s): waiting for media.example:80"), "\(said)")
  }

  /// A part of a pipe may be held until it is complete, before any of it is sent.
  @Test func readingAPipeIsProgress() {
    let watch = watch()
    for second in 1...60 {
      let wait = watch.sources.begin(SourceWaits.standardInput, at: began + .seconds(second))
      watch.sources.end(wait, hasAnswered: true, at: began + .seconds(second))
      watch.look(at: began + .seconds(second))
    }
    #expect(notes.outages == [])
  }

  /// The server has taken all bytes that there are, and more are awaited from the pipe.
  @Test func anOutageIsOverWhenThePipeIsReadAgain() throws {
    let watch = watch()
    let broken = TransportError(.broken, "PUT http://media.example/a: the connection broke")
    watch.failed(UploadError(broken), next: .seconds(1), at: began)
    watch.look(at: began + .seconds(3))
    #expect(notes.outages.last?.contains("does not answer since") == true, "\(notes.outages)")
    _ = watch.sources.begin(SourceWaits.standardInput, at: began + .seconds(4))
    watch.look(at: began + .seconds(5))
    #expect(notes.outages.last == "media.example:80 answers again, after 5.00 s")
    for second in 6...60 { watch.look(at: began + .seconds(second)) }
    #expect(notes.begins.count == 2 && Set(notes.begins).count == 1, "\(notes.outages) \(notes.begins)")
  }

  /// The source is awaited while it is opened, read and queried again.
  @Test func aSourceIsWaitedForWhileItIsRead() throws {
    let waits = SourceWaits()
    let seen = Mutex<[String]>([])
    let looking = LookingSource { seen.withLock { $0 += waits.silent(since: .now).hosts } }
    let source = WaitRecordingSource(source: looking, host: "films.example:80", waits: waits)
    let reader = try source.open(at: 0, Cancellation())
    _ = try withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { try reader.read(into: $0) }
    try reader.finish()
    #expect(seen.withLock { $0 }.count == 3)
    #expect(waits.silent(since: .now).hosts == [] && waits.answered(["films.example:80"], after: began) != [])
  }

  /// A server may need a long time to join parts.
  @Test func aFileThatIsSentAndNotConfirmedIsReportedAsSuch() throws {
    let watch = watch()
    let file = film(sent: length)
    watch.look(at: began + .seconds(6))
    let said = try #require(notes.outages.first)
    #expect(said.hasPrefix("all bytes of film.mov are sent: waiting since "), "\(said)")
    #expect(said.hasSuffix(" (6.00 s) for media.example:80 to confirm it"), "\(said)")
    watch.look(at: began + .seconds(85))
    #expect(notes.outages.last?.contains(" (1:25) ") == true, "\(notes.outages)")
    counters.large.ended(file)
    #expect(counters.large.waitingForAnswer == [])
  }
}

/// Calls back whenever one of its methods is called.
private struct LookingSource: BlobSource {
  let look: @Sendable () -> Void
  let access = BlobAccess.random

  func info(_ cancel: Cancellation) -> BlobInfo { BlobInfo(length: nil) }
  func open(at offset: Int64, _ cancel: Cancellation) -> any BlobReader {
    look()
    return Reader(look: look)
  }

  private final class Reader: BlobReader {
    let look: @Sendable () -> Void
    let info = BlobInfo(length: nil)
    init(look: @escaping @Sendable () -> Void) { self.look = look }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      look()
      return 1
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() { look() }
  }
}
