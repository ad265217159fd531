import Blobs

/// A source with its expected bytes and properties, to be tested with every `SourceCheck`.
///
/// A property that a source lacks is declared here, and the checks verify that it is missing.
public struct SourceFixture: Sendable, CustomStringConvertible {
  /// The name of the fixture in messages of failed checks.
  public var name: String
  /// Makes a new source with the same bytes for each call. Called on a thread that may block.
  public var make: @Sendable () throws -> any BlobSource
  /// The expected length in bytes.
  public var length: Int64
  /// The expected bytes at an offset.
  public var expected: @Sendable (_ offset: Int64, _ count: Int) -> [UInt8]
  /// The expected kind of access.
  public var access: BlobAccess
  /// Whether `info` returns the length.
  public var knowsLength: Bool
  /// Whether `info` returns a validator.
  public var hasValidator: Bool
  /// Whether readers return a `fileRegion()`.
  public var lendsFile: Bool
  /// Whether a sequential source can be opened at an offset before the one where its last reader stopped.
  public var goesBack = false
  /// Makes a source of this kind whose open or read blocks until cancelled; nil if such a source never blocks.
  public var stalled: (@Sendable () throws -> any BlobSource)?

  public var description: String { name }

  /// A source that should have the bytes of `pattern`.
  public init(
    _ name: String, like pattern: PatternSource, access: BlobAccess = .random, knowsLength: Bool = true,
    hasValidator: Bool = true, lendsFile: Bool = false, stalled: (@Sendable () throws -> any BlobSource)? = nil,
    make: @escaping @Sendable () throws -> any BlobSource
  ) {
    self.name = name
    self.make = make
    self.stalled = stalled
    self.access = access
    self.knowsLength = knowsLength
    self.hasValidator = hasValidator
    self.lendsFile = lendsFile
    length = pattern.length
    expected = { offset, count in pattern.bytes(at: offset, count: count) }
  }

  /// A source that should have these bytes.
  public init(
    _ name: String, like bytes: [UInt8], access: BlobAccess = .random, knowsLength: Bool = true,
    hasValidator: Bool = true, lendsFile: Bool = false, stalled: (@Sendable () throws -> any BlobSource)? = nil,
    make: @escaping @Sendable () throws -> any BlobSource
  ) {
    self.init(
      name, like: PatternSource(length: Int64(bytes.count)), access: access, knowsLength: knowsLength,
      hasValidator: hasValidator, lendsFile: lendsFile, stalled: stalled, make: make)
    expected = { offset, count in Array(bytes[Int(offset)..<Int(offset) + count]) }
  }
}

/// The reason why a check failed.
public struct CheckFailure: Error, CustomStringConvertible {
  public let description: String
  /// Creates a failure with its reason.
  public init(_ description: String) { self.description = description }
}
