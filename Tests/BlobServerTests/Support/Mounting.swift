import Blobs
import Platform

/// Swift's Glibc module does not contain `sys/mount.h`.
extension BytePath {
  /// `flags`: 4096 is MS_BIND.
  func mount(_ source: String, _ kind: String?, _ flags: UInt = 0, options: String = "size=1m") -> Bool {
    typealias Call =
      @convention(c) (
        UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UInt, UnsafeRawPointer?
      ) -> Int32
    guard let symbol = dlsym(nil, "mount") else { return false }
    let call = unsafeBitCast(symbol, to: Call.self)
    return withCString { place in
      guard let kind else { return call(source, place, nil, flags, nil) == 0 }
      return options.withCString { call(source, place, kind, flags, $0) } == 0
    }
  }

  /// Works also while files on the mount are open.
  func unmount() {
    typealias Call = @convention(c) (UnsafePointer<CChar>?, Int32) -> Int32
    guard let symbol = dlsym(nil, "umount2") else { return }
    withCString { _ = unsafeBitCast(symbol, to: Call.self)($0, 2 /* MNT_DETACH */) }
  }
}
