@testable import BlobStreams
import BlobTesting
import Blobs
import CoreFoundation
import Foundation
import Testing

struct RunLoopSignalTests {
  private final class Heard: Sendable {
    private let threads = Monitor<[ObjectIdentifier]>([])
    func hear() { threads.update { $0.append(ObjectIdentifier(Thread.current)) } }
    var count: Int { threads.update { $0.count } }
    /// Waits for this number of calls, at most 30 s.
    func wait(for count: Int) -> Bool { threads.wait(atMost: .seconds(30)) { $0.count >= count ? true : nil } ?? false }
    func isOnly(_ thread: Thread) -> Bool { threads.update { $0.allSatisfy { $0 == ObjectIdentifier(thread) } } }
  }

  @Test func loopOfAnotherThreadIsFound() {
    // If this fails, Foundation has renamed a field: see findCoreLoop. Bells then use askLoop.
    let thread = LoopThread()
    let found = findCoreLoop(thread.loop)
    #expect(found != nil && found !== CFRunLoopGetCurrent() && found !== CFRunLoopGetMain())
    thread.stop()
  }

  @Test(arguments: [true, false]) func aSignalCallsItsCallbackOnItsThread(isFound: Bool) {
    let thread = LoopThread()
    let heard = Heard()
    let bell = RunLoopSignal({ heard.hear() }, coreLoop: { isFound ? findCoreLoop($0) : nil })
    // A ring before the bell is scheduled in a loop is stored.
    bell.ring()
    bell.hang(in: thread.loop, forMode: .default)
    bell.hang(in: thread.loop, forMode: .default)
    if isFound { bell.ring() }
    #expect(heard.wait(for: 1))
    for rung in 2..<200 {
      bell.ring()
      #expect(heard.wait(for: rung))
    }
    bell.remove(from: thread.loop, forMode: .default)
    #expect(!bell.isHung)
    let before = heard.count
    bell.ring()
    #expect(LoopPause.turnsPass(in: thread.loop) && heard.count == before, "it sounded where it had been taken away")
    #expect(heard.isOnly(thread.thread))
    bell.invalidate()
    thread.stop()
  }

  @Test func aSignalWaitsForItsMode() {
    let thread = LoopThread(in: RunLoop.Mode("mine"))
    let other = LoopThread()
    let heard = Heard()
    let bell = RunLoopSignal { heard.hear() }
    bell.hang(in: thread.loop, forMode: RunLoop.Mode("not mine"))
    bell.ring()
    #expect(LoopPause.turnsPass(in: thread.loop, mode: RunLoop.Mode("mine")) && heard.count == 0)
    bell.hang(in: thread.loop, forMode: RunLoop.Mode("mine"))
    bell.ring()
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    bell.hang(in: other.loop, forMode: .common)
    bell.remove(from: thread.loop, forMode: RunLoop.Mode("mine"))
    bell.ring()
    #expect(heard.wait(for: 2))
    bell.invalidate()
    bell.ring()
    #expect(LoopPause.turnsPass(in: other.loop) && heard.count == 2, "it sounded after its end")
    thread.stop()
    other.stop()
  }

  @Test func modeThatIsTakenAwayLeavesTheOthers() {
    let thread = LoopThread()
    let heard = Heard()
    let bell = RunLoopSignal { heard.hear() }
    for mode in [RunLoop.Mode.default, RunLoop.Mode("other")] { bell.hang(in: thread.loop, forMode: mode) }
    bell.remove(from: thread.loop, forMode: RunLoop.Mode("other"))
    bell.remove(from: thread.loop, forMode: RunLoop.Mode("never hung"))
    bell.ring()
    #expect(heard.wait(for: 1))
    bell.invalidate()
    thread.stop()
  }

  /// The behavior of a loop that noticed the ring before the bell was removed from it, and calls only now.
  @Test func aRemovedLoopPassesTheSignalOn() {
    let thread = LoopThread()
    let heard = Heard()
    let bell = RunLoopSignal { heard.hear() }
    bell.hang(in: .current, forMode: .default)
    bell.hang(in: thread.loop, forMode: .default)
    bell.remove(from: .current, forMode: .default)
    RunLoopCallbacks.shared.sound(bell.clapper)
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    bell.invalidate()
    thread.stop()
  }

  /// The bell is still scheduled there in a mode that does not run, which must not be signaled either.
  @Test func aLoopWhoseModeWasRemovedPassesTheSignalOn() {
    let (left, thread) = (LoopThread(), LoopThread())
    let heard = Heard()
    let bell = RunLoopSignal { heard.hear() }
    for loop in [left.loop, thread.loop] {
      for mode in [RunLoop.Mode.default, RunLoop.Mode("never run")] { bell.hang(in: loop, forMode: mode) }
    }
    bell.remove(from: left.loop, forMode: .default)
    let clapper = bell.clapper
    let timer = Timer(timeInterval: 0, repeats: false) { _ in RunLoopCallbacks.shared.sound(clapper) }
    left.loop.add(timer, forMode: .default)
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    bell.invalidate()
    left.stop()
    thread.stop()
  }

  @Test func aSignalMayBeReleasedDuringItsCallback() {
    let thread = LoopThread()
    let heard = Heard()
    for _ in 0..<2000 {
      let bell = RunLoopSignal { heard.hear() }
      bell.hang(in: thread.loop, forMode: .default)
      bell.ring()
      bell.ring()
    }
    let last = RunLoopSignal { heard.hear() }
    let before = heard.count
    last.hang(in: thread.loop, forMode: .default)
    last.ring()
    #expect(heard.wait(for: before + 1))
    thread.stop()
  }
}

/// Lets a loop on another thread run.
enum LoopPause {
  /// Whether the loop ran a few times within 30 s.
  static func turnsPass(in loop: RunLoop, mode: RunLoop.Mode = .default) -> Bool {
    let turns = Monitor(0)
    let timer = Timer(timeInterval: 0.001, repeats: true) { _ in turns.update { $0 += 1 } }
    loop.add(timer, forMode: mode)
    defer { timer.invalidate() }
    return turns.wait(atMost: .seconds(30)) { $0 >= 5 ? true : nil } ?? false
  }
}
