import Blobs
import Testing

struct BlockingExecutorTests {
  private actor Worker {
    nonisolated let executor: BlockingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
    private var sum = 0
    init() { executor = BlockingExecutor("test-executor") }
    func add(_ number: Int) -> Int {
      sum += number
      return sum
    }
  }

  @Test func actorRunsOnItsOwnThread() async {
    let worker = Worker()
    await withTaskGroup { group in
      for number in 1...1000 { group.addTask { _ = await worker.add(number) } }
    }
    #expect(await worker.add(0) == 500_500)
  }

  @Test func executorMayGoBeforeItsThreadBegins() async {
    for _ in 0..<200 { _ = BlockingExecutor("test-executor") }
    for _ in 0..<200 { #expect(await Worker().add(1) == 1) }
  }
}
