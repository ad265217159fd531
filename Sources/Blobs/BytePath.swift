import Platform

/// A path as the operating system stores it: bytes in any encoding, or none.
public struct BytePath: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The path's bytes without a terminating NUL; a path cannot contain NUL.
  public var bytes: [UInt8]

  /// Creates a path from bytes, which must not contain NUL.
  public init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
  /// Creates a path from the UTF-8 bytes of a text.
  public init(_ text: String) { bytes = Array(text.utf8) }
  public init(stringLiteral text: String) { self.init(text) }
  /// Creates a path from a C string, which is copied.
  public init(cString: UnsafePointer<CChar>) {
    bytes = Array(UnsafeRawBufferPointer(start: cString, count: strlen(cString)))
  }

  /// The path for display: bytes that are not UTF-8 show as U+FFFD.
  public var description: String { String(decoding: bytes, as: UTF8.self) }
  /// Whether the bytes are valid UTF-8, so that `description` shows the path exactly.
  public var isUTF8: Bool { String(validating: bytes, as: UTF8.self) != nil }
  /// Whether the path has no bytes.
  public var isEmpty: Bool { bytes.isEmpty }
  /// Whether the path begins with a slash.
  public var isAbsolute: Bool { bytes.first == slash }
  /// Whether the path ends with a slash.
  public var hasTrailingSlash: Bool { bytes.last == slash }

  /// The parts between slashes, without empty ones.
  public var components: [BytePath] { bytes.split(separator: slash).map { BytePath($0) } }

  /// Whether one of the components is `name`. Does not allocate.
  package func contains(component name: StaticString) -> Bool {
    let count = name.utf8CodeUnitCount
    return bytes.withUnsafeBytes { bytes in
      guard var start = bytes.baseAddress else { return false }
      let end = start + bytes.count
      while end - start >= count {
        let next = memchr(start, Int32(slash), end - start).map { UnsafeRawPointer($0) } ?? end
        if next - start == count, memcmp(start, name.utf8Start, count) == 0 { return true }
        if next == end { return false }
        start = next + 1
      }
      return false
    }
  }

  /// Whether this can be the path of a file below a folder: relative, ending in a name, and without `.` or `..`
  /// components.
  package var isNameBelow: Bool {
    !isEmpty && !isAbsolute && !hasTrailingSlash && !contains(component: "..") && !contains(component: ".")
  }

  /// The last component, ignoring trailing slashes; empty for "" and "/".
  public var name: BytePath {
    let end = bytes.lastIndex { $0 != slash }.map { $0 + 1 } ?? 0
    let start = bytes[..<end].lastIndex(of: slash).map { $0 + 1 } ?? 0
    return BytePath(bytes[start..<end])
  }

  /// The path before the name, with its slash; empty if there is no slash. The path must not end with one.
  package var folder: BytePath { BytePath(bytes.dropLast(name.bytes.count)) }

  /// This path, a slash unless it ends with one, and the other path. An empty path returns the other one.
  public func appending(_ other: BytePath) -> BytePath {
    if bytes.isEmpty { return other }
    var path = self
    path.bytes.reserveCapacity(bytes.count + 1 + other.bytes.count)
    if !hasTrailingSlash { path.bytes.append(slash) }
    path.bytes.append(contentsOf: other.bytes)
    return path
  }

  /// Makes the folders that a file at this path needs, for this user only. If one cannot be made, making the file fails
  /// later.
  package func makeFolders() {
    var folder = BytePath(isAbsolute ? "/" : "")
    for component in components.dropLast() {
      folder = folder.appending(component)
      _ = folder.withCString { mkdir($0, 0o700) }
    }
  }

  /// This path made absolute with the working directory. Symbolic links are not resolved.
  public func absolute() -> BytePath {
    if isAbsolute { return self }
    guard let folder = getcwd(nil, 0) else { return self }
    defer { free(folder) }
    return BytePath(cString: folder).appending(self)
  }

  /// Passes the path to `body` as a C string that is valid during the call. A path that contains NUL, which no file can
  /// have, is passed as the empty path, which names nothing; truncated at the NUL, it would name another file.
  public func withCString<Result, Failure>(
    _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var terminated: [UInt8] = []
    terminated.reserveCapacity(bytes.count + 1)
    if !bytes.contains(0) { terminated.append(contentsOf: bytes) }
    terminated.append(0)
    return try terminated.withUnsafeBufferPointer { buffer throws(Failure) in
      try body(UnsafeRawPointer(buffer.baseAddress!).assumingMemoryBound(to: CChar.self))
    }
  }

  public static func < (a: BytePath, b: BytePath) -> Bool {
    a.bytes.withUnsafeBytes { a in b.bytes.withUnsafeBytes { b in isLess(a, b) } }
  }

  /// Orders paths by their bytes; for callers that have only the bytes.
  package static func isLess(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    let count = min(a.count, b.count)
    let order = count == 0 ? 0 : memcmp(a.baseAddress!, b.baseAddress!, count)
    return order == 0 ? a.count < b.count : order < 0
  }
}

private let slash = UInt8(ascii: "/")
