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
    let signal = RunLoopSignal({ heard.hear() }, coreLoop: { isFound ? findCoreLoop($0) : nil })
    // A ring before the signal is scheduled in a loop is stored.
    signal.raise()
    signal.add(in: thread.loop, forMode: .default)
    signal.add(in: thread.loop, forMode: .default)
    if isFound { signal.raise() }
    #expect(heard.wait(for: 1))
    for rung in 2..<200 {
      signal.raise()
      #expect(heard.wait(for: rung))
    }
    signal.remove(from: thread.loop, forMode: .default)
    #expect(!signal.isScheduled)
    let before = heard.count
    signal.raise()
    #expect(LoopPause.turnsPass(in: thread.loop) && heard.count == before, "it sounded where it had been taken away")
    #expect(heard.isOnly(thread.thread))
    signal.invalidate()
    thread.stop()
  }

  @Test func aSignalWaitsForItsMode() {
    let thread = LoopThread(in: RunLoop.Mode("mine"))
    let other = LoopThread()
    let heard = Heard()
    let signal = RunLoopSignal { heard.hear() }
    signal.add(in: thread.loop, forMode: RunLoop.Mode("not mine"))
    signal.raise()
    #expect(LoopPause.turnsPass(in: thread.loop, mode: RunLoop.Mode("mine")) && heard.count == 0)
    signal.add(in: thread.loop, forMode: RunLoop.Mode("mine"))
    signal.raise()
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    signal.add(in: other.loop, forMode: .common)
    signal.remove(from: thread.loop, forMode: RunLoop.Mode("mine"))
    signal.raise()
    #expect(heard.wait(for: 2))
    signal.invalidate()
    signal.raise()
    #expect(LoopPause.turnsPass(in: other.loop) && heard.count == 2, "it sounded after its end")
    thread.stop()
    other.stop()
  }

  @Test func modeThatIsTakenAwayLeavesTheOthers() {
    let thread = LoopThread()
    let heard = Heard()
    let signal = RunLoopSignal { heard.hear() }
    for mode in [RunLoop.Mode.default, RunLoop.Mode("other")] { signal.add(in: thread.loop, forMode: mode) }
    signal.remove(from: thread.loop, forMode: RunLoop.Mode("other"))
    signal.remove(from: thread.loop, forMode: RunLoop.Mode("never hung"))
    signal.raise()
    #expect(heard.wait(for: 1))
    signal.invalidate()
    thread.stop()
  }

  /// The behavior of a loop that noticed the ring before the signal was removed from it, and calls only now.
  @Test func aRemovedLoopPassesTheSignalOn() {
    let thread = LoopThread()
    let heard = Heard()
    let signal = RunLoopSignal { heard.hear() }
    signal.add(in: .current, forMode: .default)
    signal.add(in: thread.loop, forMode: .default)
    signal.remove(from: .current, forMode: .default)
    RunLoopCallbacks.shared.sound(signal.callbackNumber)
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    signal.invalidate()
    thread.stop()
  }

  /// The signal is still scheduled there in a mode that does not run, which must not be signaled either.
  @Test func aLoopWhoseModeWasRemovedPassesTheSignalOn() {
    let (left, thread) = (LoopThread(), LoopThread())
    let heard = Heard()
    let signal = RunLoopSignal { heard.hear() }
    for loop in [left.loop, thread.loop] {
      for mode in [RunLoop.Mode.default, RunLoop.Mode("never run")] { signal.add(in: loop, forMode: mode) }
    }
    signal.remove(from: left.loop, forMode: .default)
    let callbackNumber = signal.callbackNumber
    let timer = Timer(timeInterval: 0, repeats: false) { _ in RunLoopCallbacks.shared.sound(callbackNumber) }
    left.loop.add(timer, forMode: .default)
    #expect(heard.wait(for: 1) && heard.isOnly(thread.thread))
    signal.invalidate()
    left.stop()
    thread.stop()
  }

  @Test func aSignalMayBeReleasedDuringItsCallback() {
    let thread = LoopThread()
    let heard = Heard()
    for _ in 0..<2000 {
      let signal = RunLoopSignal { heard.hear() }
      signal.add(in: thread.loop, forMode: .default)
      signal.raise()
      signal.raise()
    }
    let last = RunLoopSignal { heard.hear() }
    let before = heard.count
    last.add(in: thread.loop, forMode: .default)
    last.raise()
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
