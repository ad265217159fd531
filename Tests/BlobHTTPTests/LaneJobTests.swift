import BlobTesting
import Blobs
import Testing

@testable import BlobHTTP

@Suite struct LaneJobTests {
  /// Whatever is done with a job while it is under way, the call that gives its answer takes no more stack for it.
  @Test func aJobThatIsTouchedAMillionTimesGivesItsAnswer() async throws {
    let peer = ScriptedPeer([.readRequest, .hold, answer("201 Created")])
    let pool = LanePool(.init())
    defer { pool.close() }
    let job = LaneJob(HTTPRequest("GET", peer.url()), nil, Exchange(), in: pool)
    let answer: LaneJob.Answer = await withCheckedContinuation { waiter in
      job.start { waiter.resume(returning: $0) }
      SystemThread.start("touching") {
        while peer.seen.heads.isEmpty { pauseThread(milliseconds: 1) }
        let door = LaneDoor()
        // It is begun already: that it has another door is all that changes.
        for _ in 0..<1_000_000 { _ = job.begin(on: door) }
        peer.release()
      }
    }
    #expect(try answer.get().status == 201)
  }
}
