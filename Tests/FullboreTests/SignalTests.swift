import Blobs
import Synchronization
import Testing

@testable import fullbore

@Suite struct SignalTests {
  /// The handler is called on a thread with a small stack: a million signals must not need more stack than one.
  @Test func aHandlerIsCalledAMillionTimes() async {
    let handler = SignalHandler()
    let count = Atomic<Int>(0)
    let isFirst = handler.replace(with: { _ in })
    let isSecond = handler.replace(with: { count.add(Int($0), ordering: .relaxed) })
    #expect(isFirst && !isSecond)
    await withCheckedContinuation { done in
      SystemThread.start("signals", stack: 64 << 10) {
        for _ in 0..<1_000_000 { handler.call(1) }
        done.resume()
      }
    }
    #expect(count.load(ordering: .relaxed) == 1_000_000)
  }

  /// The progress display is informed of each file, and must not keep finished ones.
  @Test func theProgressBoardIsUpdatedAMillionTimes() async {
    let board = ProgressBoard(Console(descriptor: -1, limit: 1 << 20), PushCounters(), TerminalStyle())
    await withCheckedContinuation { done in
      SystemThread.start("board", stack: 128 << 10) {
        for number in 0..<1_000_000 {
          board.say("a")
          if number % 10_000 == 0 { board.draw() }
        }
        board.end(["done"])
        done.resume()
      }
    }
  }
}
