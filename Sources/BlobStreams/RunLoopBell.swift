import CoreFoundation
import Foundation

/// A bell that hangs in run loops, in any number of loops and modes: each `ring` makes it sound once, on one of their
/// threads, while that loop runs in a mode where it hangs. Rings before it has sounded are one. Any thread may call.
package final class RunLoopBell: @unchecked Sendable {
  // `lock` guards `places`; a run-loop source may be used by any thread.
  private let lock = NSLock()
  private var places: [Place] = []
  private let source: CFRunLoopSource
  /// By which the loops call.
  let clapper = Clappers.shared.next()
  private let coreLoop: @Sendable (RunLoop) -> CFRunLoop?

  private struct Place {
    /// nil where Core Foundation came to hang it up itself.
    let loop: RunLoop?
    /// nil until the loop itself has told; see `askLoop`.
    var core: CFRunLoop?
    let mode: RunLoop.Mode
  }

  /// `sound` runs on the loop's thread. It is held until the bell is invalidated, and so is what it holds.
  package convenience init(_ sound: @escaping @Sendable () -> Void) {
    self.init(sound, coreLoop: findCoreLoop)
  }

  /// `coreLoop` says which loop of Core Foundation's a loop is, or nil where it cannot tell.
  init(_ sound: @escaping @Sendable () -> Void, coreLoop: @escaping @Sendable (RunLoop) -> CFRunLoop?) {
    self.coreLoop = coreLoop
    source = makeSource(clapper)
    Clappers.shared.hang(clapper) { [weak self] in self?.sounded(sound) }
  }

  deinit { invalidate() }

  package var isHung: Bool { lock.withLock { !places.isEmpty } }

  package func ring() {
    CFRunLoopSourceSignal(source)
    lock.withLock { for place in places { if let core = place.core { CFRunLoopWakeUp(core) } } }
  }

  /// Whether it hangs in the loop of this thread, in the mode that it runs in. One that was about to call when it was left
  /// calls all the same, and is to pass the ring on to those that stayed: so ask with the lock that guards what would be
  /// told.
  var isHere: Bool {
    let loop = CFRunLoopGetCurrent()
    guard let mode: CFRunLoopMode = CFRunLoopCopyCurrentMode(loop) else { return false }
    return lock.withLock { !places.isEmpty && CFRunLoopContainsSource(loop, source, mode) }
  }

  private func sounded(_ sound: () -> Void) { if isHere { sound() } else { ring() } }

  /// Twice in the same place is once.
  package func hang(in loop: RunLoop, forMode mode: RunLoop.Mode) { hang(loop, coreLoop(loop), mode) }

  package func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) { remove(loop, coreLoop(loop), mode) }

  /// It never sounds again, and lets go of what it holds.
  package func invalidate() {
    lock.withLock { places = [] }
    Clappers.shared.remove(clapper)
    CFRunLoopSourceInvalidate(source)
  }

  func hang(_ loop: RunLoop?, _ core: CFRunLoop?, _ mode: RunLoop.Mode) {
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

  /// On its own thread a loop can tell what Foundation would not.
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
