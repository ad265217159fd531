import BlobTesting
import TestSupport
import Blobs
import Testing

struct CancellationTests {
  @Test func wakeUpsRunOnceEachWhenItIsCancelled() {
    let cancel = Cancellation()
    let calls = Counter()
    cancel.whileWaiting(wakeUp: { calls.add() }) {
      cancel.whileWaiting(wakeUp: { calls.add() }) {
        cancel.cancel()
        cancel.cancel()
      }
    }
    #expect(calls.count == 2)
    #expect(cancel.isCancelled)
  }

  @Test func wakeUpRegisteredTooLateRunsAtOnce() {
    let cancel = Cancellation()
    cancel.cancel()
    let calls = Counter()
    let callsInside = cancel.whileWaiting(wakeUp: { calls.add() }) { calls.count }
    #expect(callsInside == 1)
  }

  @Test func wakeUpIsForgottenAfterTheWait() {
    let cancel = Cancellation()
    let calls = Counter()
    #expect(cancel.whileWaiting(wakeUp: { calls.add() }) { 42 } == 42)
    _ = failure { () throws(BlobError) in
      try cancel.whileWaiting(wakeUp: { calls.add() }) { () throws(BlobError) in throw BlobError(.io, "x") }
    }
    cancel.cancel()
    #expect(calls.count == 0)
  }

  @Test func checkNamesTheOperation() {
    let cancel = Cancellation()
    #expect(failure { () throws(BlobError) in try cancel.check("open x") } == nil)
    cancel.cancel()
    let error = failure { () throws(BlobError) in try cancel.check("open x") }
    #expect(error?.code == .cancelled)
    #expect(error?.message == "open x: cancelled")
  }

  @Test func noWakeUpIsLostHoweverCloseTheyCome() {
    for _ in 0..<500 {
      let cancel = Cancellation()
      let sleeper = Background {
        failure { () throws(BlobError) in try MonotonicClock().sleep(.seconds(60), cancel, "sleep") }?.code
      }
      cancel.cancel()
      #expect(sleeper.value() == .cancelled)
    }
  }
}
