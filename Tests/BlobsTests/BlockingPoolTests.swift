import Blobs
import Testing

struct BlockingPoolTests {
  @Test func poolRunsAsMuchAtOnceAsItHasThreads() async {
    for _ in 0..<500 {
      let pool = BlockingPool("test-pool", threads: 2)
      // One thread exists and is idle; the second must be started while the first takes its work.
      await pool.run {}
      let arrived = Monitor(0)
      let met = await withTaskGroup { group in
        for _ in 0..<2 {
          group.addTask {
            await pool.run {
              arrived.update { $0 += 1 }
              // Each task waits for the other: with one thread this would never end.
              return arrived.wait(atMost: .seconds(30)) { $0 == 2 ? true : nil } ?? false
            }
          }
        }
        return await group.reduce(into: true) { $0 = $0 && $1 }
      }
      guard met else {
        Issue.record("work waited for a busy thread although another was allowed")
        return
      }
    }
  }

  @Test func poolStartsNoMoreThreadsThanAllowed() async {
    let pool = BlockingPool("test-pool", threads: 2)
    let load = Monitor((now: 0, most: 0))
    await withTaskGroup { group in
      for _ in 0..<100 {
        group.addTask {
          await pool.run {
            load.update { load in
              load.now += 1
              load.most = max(load.most, load.now)
            }
            load.update { $0.now -= 1 }
          }
        }
      }
    }
    #expect(load.update { $0.most } <= 2)
  }

  @Test func threadWithoutWorkEndsWhenItsPatienceDoes() async {
    let pool = BlockingPool("test-pool", threads: 8, patience: .milliseconds(20))
    for _ in 0..<3 {
      let work = Monitor(0)
      for _ in 0..<100 { pool.submit { work.update { $0 += 1 } } }
      #expect(work.wait(atMost: .seconds(30)) { $0 == 100 ? true : nil } != nil)
      #expect(1...8 ~= pool.threads)
      var patience = 1000
      while pool.threads > 0 && patience > 0 {
        try? await Task.sleep(for: .milliseconds(5))  // throws only in a cancelled test
        patience -= 1
      }
      #expect(pool.threads == 0)
    }
  }

  @Test func poolHandsOnWhatIsThrown() async {
    let pool = BlockingPool("test-pool", threads: 1)
    await #expect(throws: BlobError.self) {
      try await pool.run { () throws(BlobError) -> Int in throw BlobError(.io, "on purpose") }
    }
    #expect(await pool.run { 5 } == 5)
  }
}
