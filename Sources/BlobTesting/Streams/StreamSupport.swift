import BlobStreams
import Blobs
import CoreFoundation
import Foundation

/// A thread that runs its run loop until `stop` is called.
package final class LoopThread: @unchecked Sendable {
  // Safe to share: its properties are immutable.
  package let loop: RunLoop
  package let thread: Thread
  private let isStopped = Monitor(false)
  private let ended = Monitor(false)

  package init(in mode: RunLoop.Mode = .default) {
    let started = Monitor<Place?>(nil)
    // A Thread retains its block as long as it exists, so the block must not retain this object, which owns the thread.
    thread = Thread { [isStopped, ended] in
      let loop = RunLoop.current
      // The timer keeps the loop from ending, and checks periodically whether it should.
      let timer = Timer(timeInterval: 0.002, repeats: true) { _ in
        if isStopped.update({ $0 }) { CFRunLoopStop(CFRunLoopGetCurrent()) }
      }
      loop.add(timer, forMode: mode)
      started.update { $0 = Place(loop: loop) }
      while !isStopped.update({ $0 }) { _ = RunLoop.current.run(mode: mode, before: .distantFuture) }
      timer.invalidate()
      ended.update { $0 = true }
    }
    thread.start()
    loop = started.wait { $0 }.loop
  }

  // Passes the loop from the new thread to the initializer.
  private struct Place: @unchecked Sendable { let loop: RunLoop }

  package func stop() {
    isStopped.update { $0 = true }
    _ = ended.wait { $0 ? true : nil }
  }
}

extension RunLoop {
  /// Runs the current loop until it has handled one source, at most this long; 0 does not wait.
  package func turn(in mode: RunLoop.Mode = .default, atMost seconds: Double) {
    if seconds <= 0 {
      _ = run(mode: mode, before: .distantPast)
      return
    }
    // A run with a deadline would create a libdispatch timer each time, and soon hundreds of threads for them.
    let timer = Timer(timeInterval: seconds, repeats: false) { _ in CFRunLoopStop(CFRunLoopGetCurrent()) }
    add(timer, forMode: mode)
    _ = run(mode: mode, before: .distantFuture)
    timer.invalidate()
  }

  /// Whether the loop has sources or timers to wait for in this mode.
  package func isHeld(in mode: RunLoop.Mode) -> Bool { run(mode: mode, before: .distantPast) }
}

/// Collects bytes from any thread.
final class Bytes: Sendable {
  private let held = Monitor<[UInt8]>([])
  var bytes: [UInt8] { held.update { $0 } }
  func append(_ more: [UInt8]?) { if let more { held.update { $0 += more } } }
}

final class WeakStream {
  weak var stream: BlobInputStream?
}

/// Retains a stream. Not thread-safe.
final class Owner: @unchecked Sendable {
  var stream: BlobInputStream?
  var events: EventLog?
}
