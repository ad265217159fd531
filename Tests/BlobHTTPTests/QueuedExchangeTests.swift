import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

@Suite struct LaneJobTests {
  /// However often an active job is changed, the call that delivers its response needs no more stack.
  @Test func aJobThatIsTouchedAMillionTimesGivesItsAnswer() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer("201 Created")])
    let pool = ConnectionPool(.init())
    defer { pool.close() }
    let job = QueuedExchange(HTTPRequest("GET", peer.url()), nil, Exchange(), in: pool)
    let answer: QueuedExchange.Answer = await withCheckedContinuation { waiter in
      job.start { waiter.resume(returning: $0) }
      SystemThread.start("touching") {
        while peer.seen.heads.isEmpty { pauseThread(milliseconds: 1) }
        let inbox = WorkerInbox()
        // The job has already begun, so only its inbox changes.
        for _ in 0..<1_000_000 { _ = job.begin(on: inbox) }
        peer.release()
      }
    }
    #expect(try answer.get().status == 201)
  }
}
