/// An error in opening or reading bytes. The message names the operation, the place and the numbers.
public struct BlobError: Error, Sendable, CustomStringConvertible {
  /// The kind of an error. Programs decide by it; the message is for people.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    public let description: String
    private init(_ name: String) { description = name }

    /// Nothing exists at that place.
    public static let notFound = Code("notFound")
    /// The system refuses access.
    public static let permission = Code("permission")
    /// The source ended before the length it had promised.
    public static let truncated = Code("truncated")
    /// The content is no longer the version that was opened. Start again with the new one.
    public static let changed = Code("changed")
    /// The reader has lost its source, which may still have the same bytes: open again at the same offset.
    public static let invalidated = Code("invalidated")
    /// The offset lies past the end, or before the first byte that a sequential source still has.
    public static let outOfRange = Code("outOfRange")
    /// The operation was stopped by its `Cancellation`.
    public static let cancelled = Code("cancelled")
    /// This kind of object has no bytes to read: a folder, a socket.
    public static let unsupported = Code("unsupported")
    /// The device, file system or library failed. `errno` gives the reason when it is not 0.
    public static let io = Code("io")
  }

  /// The kind of the error.
  public var code: Code
  /// The operation, the place and the numbers, without secrets.
  public var message: String
  /// The system's error number, or 0.
  public var errno: Int32
  /// The error of a lower layer; nil if there is none.
  public var cause: (any Error)?

  /// Creates an error. `errno` is the system's error number; 0: the system reported none.
  public init(_ code: Code, _ message: String, errno: Int32 = 0, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.errno = errno
    self.cause = cause
  }

  public var description: String { message }
}
