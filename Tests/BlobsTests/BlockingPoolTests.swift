import Blobs
import Testing

struct BlockingPoolTests {
  @Test func poolRunsAsMuchAtOnceAsItHasThreads() async {
    let pool = BlockingPool("test-pool", threads: 4)
    let arrived = Monitor(0)
    // Each waits for all: with one thread too few this would never end.
    for _ in 0..<50 {
      arrived.update { $0 = 0 }
      let met = await withTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            await pool.run {
              arrived.update { $0 += 1 }
              return arrived.wait(atMost: .seconds(10)) { $0 == 4 ? true : nil } ?? false
            }
          }
        }
        return await group.reduce(into: true) { $0 = $0 && $1 }
      }
      #expect(met)
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

  @Test func poolHandsOnWhatIsThrown() async {
    let pool = BlockingPool("test-pool", threads: 1)
    await #expect(throws: BlobError.self) {
      try await pool.run { () throws(BlobError) -> Int in throw BlobError(.io, "on purpose") }
    }
    #expect(await pool.run { 5 } == 5)
  }
}
