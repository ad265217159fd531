import CoreFoundation
import Foundation

/// A signal that can be added to any number of run loops and modes. After `raise`, the callback is called once, on the
/// thread of one of these run loops, while that loop runs in one of the modes. Several `raise`s before the callback runs
/// count as one. Any thread may call its methods.
package final class RunLoopSignal: @unchecked Sendable {
  // `lock` guards `places`. A run-loop source may be used by any thread.
  private let lock = NSLock()
  private var places: [Place] = []
  private let source: CFRunLoopSource
  /// The number by which the run loops find the callback.
  let callbackNumber = RunLoopCallbacks.shared.next()
  private let coreLoop: @Sendable (RunLoop) -> CFRunLoop?

  private struct Place {
    /// nil if Core Foundation added the signal itself.
    let loop: RunLoop?
    /// nil until the run loop itself has provided it; see `askLoop`.
    var core: CFRunLoop?
    let mode: RunLoop.Mode
  }

  /// `sound` runs on the run loop's thread. It is retained until `invalidate`.
  package convenience init(_ sound: @escaping @Sendable () -> Void) {
    self.init(sound, coreLoop: findCoreLoop)
  }

  /// `coreLoop` returns the Core Foundation run loop of a `RunLoop`, or nil if it cannot be determined.
  init(_ sound: @escaping @Sendable () -> Void, coreLoop: @escaping @Sendable (RunLoop) -> CFRunLoop?) {
    self.coreLoop = coreLoop
    source = makeSource(callbackNumber)
    RunLoopCallbacks.shared.add(callbackNumber) { [weak self] in self?.sounded(sound) }
  }

  deinit { invalidate() }

  package var isScheduled: Bool { lock.withLock { !places.isEmpty } }

  package func raise() {
    CFRunLoopSourceSignal(source)
    lock.withLock { for place in places { if let core = place.core { CFRunLoopWakeUp(core) } } }
  }

  /// Whether the signal is added to this thread's run loop in the mode in which that loop runs. A loop that was just
  /// removed may still call; it must then pass the signal on to the remaining loops. So check this under the lock that
  /// guards the events.
  var isHere: Bool {
    let loop = CFRunLoopGetCurrent()
    guard let mode: CFRunLoopMode = CFRunLoopCopyCurrentMode(loop) else { return false }
    return lock.withLock { !places.isEmpty && CFRunLoopContainsSource(loop, source, mode) }
  }

  private func sounded(_ sound: () -> Void) { if isHere { sound() } else { raise() } }

  /// Adding it twice to the same loop and mode has no further effect.
  package func add(in loop: RunLoop, forMode mode: RunLoop.Mode) { add(loop, coreLoop(loop), mode) }

  package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { remove(loop, coreLoop(loop), mode) }

  /// The callback is never called again, and is released.
  package func invalidate() {
    lock.withLock { places = [] }
    RunLoopCallbacks.shared.remove(callbackNumber)
    CFRunLoopSourceInvalidate(source)
  }

  func add(_ loop: RunLoop?, _ core: CFRunLoop?, _ mode: RunLoop.Mode) {
    lock.withLock {
      if index(loop, core, mode) != nil { return }
      places.append(Place(loop: loop, core: core, mode: mode))
      if let core { CFRunLoopAddSource(core, source, coreMode(mode)) }
    }
    if let loop, core == nil { askLoop(loop, mode) }
  }

  func remove(_ loop: RunLoop?, _ core: CFRunLoop?, _ mode: RunLoop.Mode) {
    lock.withLock {
      guard let index = index(loop, core, mode) else { return }
      if let core = places.remove(at: index).core { CFRunLoopRemoveSource(core, source, coreMode(mode)) }
    }
  }

  private func index(_ loop: RunLoop?, _ core: CFRunLoop?, _ mode: RunLoop.Mode) -> Int? {
    places.firstIndex { place in
      place.mode == mode && (core != nil && place.core === core || loop != nil && place.loop === loop)
    }
  }

  /// Runs a timer on the loop: on its own thread, a loop can provide its Core Foundation loop, which Foundation does
  /// not expose.
  private func askLoop(_ loop: RunLoop, _ mode: RunLoop.Mode) {
    let timer = Timer(timeInterval: 0, repeats: false) { [weak self] _ in
      self?.answer(RunLoop.current, CFRunLoopGetCurrent(), mode)
    }
    loop.add(timer, forMode: mode)
  }

  private func answer(_ loop: RunLoop, _ core: CFRunLoop, _ mode: RunLoop.Mode) {
    lock.withLock {
      guard let index = index(loop, nil, mode), places[index].core == nil else { return }
      places[index].core = core
      CFRunLoopAddSource(core, source, coreMode(mode))
    }
  }
}
