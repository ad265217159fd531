import BlobStreams
import Blobs
import CoreFoundation
import Foundation

/// A thread that runs its loop until it is told to stop.
package final class LoopThread: @unchecked Sendable {
  // Nothing in it changes.
  package let loop: RunLoop
  package let thread: Thread
  private let isStopped = Monitor(false)
  private let ended = Monitor(false)

  package init(in mode: RunLoop.Mode = .default) {
    let started = Monitor<Place?>(nil)
    // It keeps its block for life: what holds it must not be held there.
    thread = Thread { [isStopped, ended] in
      let loop = RunLoop.current
      // Keeps the loop running, and looks from time to time whether it should.
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

  private struct Place: @unchecked Sendable { let loop: RunLoop }  // on its way from one thread to another

  package func stop() {
    isStopped.update { $0 = true }
    _ = ended.wait { $0 ? true : nil }
  }
}

extension RunLoop {
  /// Lets the current loop handle one thing, waiting for it at most so many seconds; 0: if it is there.
  package func turn(in mode: RunLoop.Mode = .default, atMost seconds: Double) {
    if seconds <= 0 {
      _ = run(mode: mode, before: .distantPast)
      return
    }
    // With a limit of its own, every run would start a timer of libdispatch's, and soon hundreds of threads for them.
    let timer = Timer(timeInterval: seconds, repeats: false) { _ in CFRunLoopStop(CFRunLoopGetCurrent()) }
    add(timer, forMode: mode)
    _ = run(mode: mode, before: .distantFuture)
    timer.invalidate()
  }

  /// Whether anything is in it that it would wait for.
  package func isHeld(in mode: RunLoop.Mode) -> Bool { run(mode: mode, before: .distantPast) }
}

/// Bytes from any thread.
final class Bytes: Sendable {
  private let held = Monitor<[UInt8]>([])
  var bytes: [UInt8] { held.update { $0 } }
  func append(_ more: [UInt8]?) { if let more { held.update { $0 += more } } }
}

final class WeakStream {
  weak var stream: BlobInputStream?
}

/// Holds a stream from elsewhere. One thread at a time.
final class Owner: @unchecked Sendable {
  var stream: BlobInputStream?
  var events: EventLog?
}
