import BlobHTTP
import Blobs
import Synchronization
import Testing

@testable import BlobUpload
@testable import fullbore

/// What is said of a push in which nothing is sent for a while.
@Suite struct OutageWatchTests {
  private let counters = PushCounters()
  private let notes = Notes()
  private let began = ContinuousClock.now
  private let length: Int64 = 100 << 20

  private func watch() -> OutageWatch {
    counters.found(length: length)
    let watch = OutageWatch(HTTPURL("http://media.example/")!, notes, counters)
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

  @Test func readingBackIsProgress() {
    let watch = watch()
    _ = film(sent: length)
    for second in 1...60 {
      counters.comparedBytes.addClamped(1 << 20)
      watch.look(at: began + .seconds(second))
    }
    #expect(notes.outages == [])
  }

  /// A server may join parts for long.
  @Test func whatIsSentAndNotConfirmedIsNamedSo() throws {
    let watch = watch()
    let file = film(sent: length)
    watch.look(at: began + .seconds(6))
    let said = try #require(notes.outages.first)
    #expect(said.hasPrefix("all bytes of film.mov are sent: waiting since "), "\(said)")
    #expect(said.hasSuffix("for media.example:80 to confirm it"), "\(said)")
    counters.large.ended(file)
    #expect(counters.large.waitingForAnswer == [])
  }
}

/// Keeps what is said of outages.
private final class Notes: PushReport {
  private let state = Mutex<[String]>([])
  var outages: [String] { state.withLock { $0 } }
  func outage(_ outage: Outage) { state.withLock { $0.append(outage.text) } }
  func started(_ file: PushedFile) {}
  func finished(_ file: PushedFile, how: Finish) {}
  func failed(_ file: PushedFile, _ message: String) {}
  func failed(_ path: BytePath, _ message: String) {}
  func dropped(_ file: PushedFile) {}
  func leftOut(_ path: BytePath, reason: String) {}
  func notice(_ text: String) {}
  func ended(_ text: String) {}
  func summary(_ summary: PushSummary) {}
}
