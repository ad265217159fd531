import CoreFoundation
import Foundation

/// The loop of Core Foundation's that `loop` is. On Linux it is not public: the current and the main one can be asked
/// for, others keep theirs in a field; nil if that field is not there any more.
@Sendable func findCoreLoop(_ loop: RunLoop) -> CFRunLoop? {
  #if canImport(ObjectiveC)
    return loop.getCFRunLoop()
  #else
    if loop === RunLoop.current { return CFRunLoopGetCurrent() }
    if loop === RunLoop.main { return CFRunLoopGetMain() }
    guard let field = Mirror(reflecting: loop).descendant("_cfRunLoopStorage") as? AnyObject,
      CFGetTypeID(field) == CFRunLoopGetTypeID()
    else { return nil }
    // A cast would ask for its class, and types of Core Foundation have none of their own.
    return Unmanaged<CFRunLoop>.fromOpaque(Unmanaged.passUnretained(field).toOpaque()).takeUnretainedValue()
  #endif
}

package func coreMode(_ mode: RunLoop.Mode) -> CFRunLoopMode {
  #if canImport(ObjectiveC)
    return CFRunLoopMode(rawValue: mode.rawValue as CFString)
  #else
    // Known by its address.
    if mode == .common { return kCFRunLoopCommonModes }
    return CFStringCreateWithCString(nil, mode.rawValue, CFStringBuiltInEncodings.UTF8.rawValue)
  #endif
}

/// What the sources of run loops call, by number. A loop that is about to call one may find it gone: a pointer to it,
/// which Core Foundation would let go of on another thread at that moment, could not be told from a good one.
final class Clappers: @unchecked Sendable {
  static let shared = Clappers()

  // `lock` guards both.
  private let lock = NSLock()
  private var sounds: [UInt: @Sendable () -> Void] = [:]
  private var last: UInt = 0

  func next() -> UInt {
    lock.withLock {
      last += 1
      return last
    }
  }

  func hang(_ number: UInt, _ sound: @escaping @Sendable () -> Void) { lock.withLock { sounds[number] = sound } }

  func remove(_ number: UInt) { _ = lock.withLock { sounds.removeValue(forKey: number) } }

  func sound(_ number: UInt) { lock.withLock { sounds[number] }?() }
}

/// A source that calls the clapper of that number when it was signalled.
func makeSource(_ number: UInt) -> CFRunLoopSource {
  var context = CFRunLoopSourceContext()
  context.info = UnsafeMutableRawPointer(bitPattern: number)
  context.perform = perform
  return CFRunLoopSourceCreate(nil, 0, &context)
}

/// Invalidated meanwhile, the source has no number any more.
private func perform(_ info: UnsafeMutableRawPointer?) { Clappers.shared.sound(UInt(bitPattern: info)) }
