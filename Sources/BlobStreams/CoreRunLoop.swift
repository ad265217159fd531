import CoreFoundation
import Foundation

/// The Core Foundation run loop of `loop`. On Linux this is not public: only the current and the main run loop can be
/// queried; other `RunLoop` objects store it in a private field. nil if that field does not exist.
@Sendable func findCoreLoop(_ loop: RunLoop) -> CFRunLoop? {
  #if canImport(ObjectiveC)
    return loop.getCFRunLoop()
  #else
    if loop === RunLoop.current { return CFRunLoopGetCurrent() }
    if loop === RunLoop.main { return CFRunLoopGetMain() }
    guard let field = Mirror(reflecting: loop).descendant("_cfRunLoopStorage") as? AnyObject,
      CFGetTypeID(field) == CFRunLoopGetTypeID()
    else { return nil }
    // A conditional cast would check the class, and Core Foundation types have no class of their own.
    return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(field).toOpaque()).takeUnretainedValue()
  #endif
}

package func coreMode(_ mode: RunLoop.Mode) -> CFRunLoopMode {
  #if canImport(ObjectiveC)
    return CFRunLoopMode(rawValue: mode.rawValue as CFString)
  #else
    // The common modes constant is recognized by its address.
    if mode == .common { return kCFRunLoopCommonModes }
    return CFStringCreateWithCString(nil, mode.rawValue, CFStringBuiltInEncodings.UTF8.rawValue)
  #endif
}

/// Maps numbers to the callbacks of run-loop sources. A run loop may be about to call a source while another thread
/// releases it. With a pointer as context, Core Foundation could not detect that; a number that was removed is simply
/// not found.
final class RunLoopCallbacks: @unchecked Sendable {
  static let shared = RunLoopCallbacks()

  // `lock` guards `sounds` and `last`.
  private let lock = NSLock()
  private var sounds: [UInt: @Sendable () -> Void] = [:]
  private var last: UInt = 0

  func next() -> UInt {
    lock.withLock {
      last += 1
      return last
    }
  }

  func add(_ number: UInt, _ sound: @escaping @Sendable () -> Void) { lock.withLock { sounds[number] = sound } }

  func remove(_ number: UInt) { _ = lock.withLock { sounds.removeValue(forKey: number) } }

  func sound(_ number: UInt) { lock.withLock { sounds[number] }?() }
}

/// Creates a run-loop source that calls the callback with that number when it is signalled.
func makeSource(_ number: UInt) -> CFRunLoopSource {
  var context = CFRunLoopSourceContext()
  context.info = UnsafeMutableRawPointer(bitPattern: number)
  context.perform = perform
  return CFRunLoopSourceCreate(nil, 0, &context)
}

/// If the source was invalidated meanwhile, its number has no callback any more.
private func perform(_ info: UnsafeMutableRawPointer?) { RunLoopCallbacks.shared.sound(UInt(bitPattern: info)) }
