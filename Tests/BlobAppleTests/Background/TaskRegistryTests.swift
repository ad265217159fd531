import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Events of background tasks, in the order in which a system may deliver them.
@Suite(.timeLimit(.minutes(1))) struct TaskRegistryTests {
  private let scratch: ScratchFolder
  private let registry: TaskRegistry
  private let cancelled = CancelledTasks()
  private let label = TaskLabel(
    upload: TaskLabel.digest("film"), version: TaskLabel.digest("1"),
    HTTPRequest("HEAD", HTTPURL("http://127.0.0.1/film")!), body: nil)
  private let gone = BackgroundTaskEnd.failed(TransportError(.cancelled, "cancelled"), resumeData: nil)

  init() throws {
    scratch = try ScratchFolder()
    let wakeUp = WakeUp()
    registry = TaskRegistry(PieceSpool(scratch.path.appending("spool"), bound: 1000, wakeUp), wakeUp, cancelled)
  }

  /// The upload would take the end of its own cancelled task for a response to the next request.
  @Test(arguments: [false, true]) func theEventOfADiscardedTaskMakesNoEntry(isOfThisProcess: Bool) {
    registry.begin(running: isOfThisProcess ? [] : [label], pieces: [])
    if isOfThisProcess { registry.add(label) { _ in } }
    registry.giveUp(label)
    registry.ended(label.text, gone)
    #expect(registry.pending(label.upload).isEmpty && registry.uploads.isEmpty)
  }

  @Test func anEventOfATaskThatIsNotKnownYetIsKept() async {
    registry.ended(label.text, gone)
    registry.begin(running: [], pieces: [])
    #expect(registry.pending(label.upload) == [label])
    #expect(await registry.end(of: label) != nil)
  }

  /// The system resumes a task under the label of the one that has failed.
  @Test func aTaskThatIsResumedIsKnownAgain() async {
    registry.begin(running: [label], pieces: [])
    registry.ended(label.text, gone)
    #expect(await registry.end(of: label) != nil)
    registry.add(label) { _ in }
    registry.ended(label.text, gone)
    #expect(await registry.end(of: label) != nil)
  }

  /// Nobody waits for an upload that does not run, so the server is asked when it is added again.
  @Test func anEventOfAnUploadThatDoesNotRunMakesNoEntry() {
    registry.begin(running: [], pieces: [])
    registry.dropOthers()
    registry.ended(label.text, gone)
    #expect(registry.uploads.isEmpty)
  }

  /// Another uploader of the process may still cancel requests that an earlier process has left.
  @Test func theOpeningOfAnotherSessionIsWaitedFor() async {
    let (film, version) = (TaskLabel.digest("film"), TaskLabel.digest("1"))
    cancelled.beginOpening("mobile")
    await cancelled.wait(film, otherThan: version, in: "mobile", within: .seconds(600))
    let waiting = Task { [cancelled] in
      await cancelled.wait(film, otherThan: version, in: "wifi", within: .seconds(600))
    }
    cancelled.endOpening("mobile")
    await waiting.value
  }

  /// A system may never tell the end of a cancelled task, and nobody may wait for it.
  @Test func theNumberOfCancelledTasksIsBounded() async throws {
    registry.begin(running: [], pieces: [])
    registry.settle()
    let url = try #require(HTTPURL("http://127.0.0.1/film"))
    for number in 0..<2000 {
      let label = TaskLabel(
        upload: TaskLabel.digest("film \(number)"), version: TaskLabel.digest("1"), HTTPRequest("POST", url), body: nil)
      registry.add(label) { _ in }
      registry.giveUp(label)
    }
    // The first one is not known any more, and the last one is.
    let (film, other) = (TaskLabel.digest("film 0"), TaskLabel.digest("2"))
    await cancelled.wait(film, otherThan: other, in: "test", within: .seconds(600))
    let clock = ContinuousClock.now
    await cancelled.wait(TaskLabel.digest("film 1999"), otherThan: other, in: "test", within: .milliseconds(50))
    #expect(ContinuousClock.now - clock >= .milliseconds(50))
  }
}
