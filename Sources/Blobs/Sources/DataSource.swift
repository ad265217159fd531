/// Bytes in memory. Meant for small content: headers, tests, form fields.
public struct DataSource: BlobSource {
  /// The bytes of the source.
  public let bytes: [UInt8]
  /// The length and the version of the bytes. Reading it neither blocks nor fails.
  public let info: BlobInfo
  public var access: BlobAccess { .random }

  /// The validator, unless given, is the SHA-256 of the bytes. This initializer computes it, which takes some 8 ms a
  /// megabyte.
  public init(_ bytes: [UInt8], validator: Validator? = nil, preferredRead: Int = 0) {
    self.bytes = bytes
    let validator = validator ?? Validator(version: SHA256.hex(of: bytes))
    info = BlobInfo(length: Int64(bytes.count), validator: validator, preferredRead: preferredRead)
  }

  /// A source of the UTF-8 bytes of a text.
  public init(_ text: String) { self.init(Array(text.utf8)) }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at bytes in memory")
    return info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open bytes in memory")
    guard 0...Int64(bytes.count) ~= offset else {
      throw BlobError(.outOfRange, "open bytes in memory at byte \(offset): there are \(bytes.count)")
    }
    return DataReader(self, at: Int(offset))
  }
}

private final class DataReader: BlobReader {
  private let source: DataSource
  private var offset: Int

  init(_ source: DataSource, at offset: Int) {
    self.source = source
    self.offset = offset
  }

  var info: BlobInfo { source.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    precondition(!buffer.isEmpty)
    let count = min(buffer.count, source.bytes.count - offset)
    source.bytes.withUnsafeBytes { bytes in
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
    }
    offset += count
    return count
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() {}
}
