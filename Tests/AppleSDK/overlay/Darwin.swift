// swift-format-ignore-file
// What the overlay of Darwin adds to the headers: `errno`, and the calls in C that take a variable number of arguments.
@_exported import Darwin

public var errno: Int32 { get { fatalError() } set { fatalError() } }
public var SIG_DFL: (@convention(c) (Int32) -> Void)? { fatalError() }
public var SIG_IGN: (@convention(c) (Int32) -> Void)? { fatalError() }
public var MAP_FAILED: UnsafeMutableRawPointer? { fatalError() }
public var TIOCGWINSZ: UInt { 0x4008_7468 }
@discardableResult
public func signal(_ number: Int32, _ handler: (@convention(c) (Int32) -> Void)?) -> (@convention(c) (Int32) -> Void)? {
  fatalError()
}
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { fatalError() }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { fatalError() }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { fatalError() }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { fatalError() }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ ptr: UnsafeMutableRawPointer) -> Int32 { fatalError() }
public func ioctl(_ fd: Int32, _ request: UInt, _ ptr: UnsafeMutableRawPointer) -> Int32 { fatalError() }
public var S_IFMT: mode_t { 0o170000 }
public var S_ISVTX: mode_t { 0o1000 }
public var S_IFIFO: mode_t { 0o010000 }
public var S_IFCHR: mode_t { 0o020000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFBLK: mode_t { 0o060000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }

/// `Boolean` of MacTypes.h. Functions that take or return one have `Bool` in Swift.
@frozen public struct DarwinBoolean: ExpressibleByBooleanLiteral, Sendable {
  var value: UInt8
  public init(_ value: Bool) { self.value = value ? 1 : 0 }
  public init(booleanLiteral value: Bool) { self.init(value) }
  public var boolValue: Bool { value != 0 }
}
public func _convertBoolToDarwinBoolean(_ value: Bool) -> DarwinBoolean { DarwinBoolean(value) }
public func _convertDarwinBooleanToBool(_ value: DarwinBoolean) -> Bool { value.boolValue }
