import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// A body with its checksum.
struct S3Body: Sendable {
  /// Fields for the request: `x-amz-content-sha256`, and the checksum or the announcement of a trailer.
  var headers: HTTPHeaders
  var slice: BlobSlice
  /// The checksum of the bytes; known once they were sent.
  fileprivate let value: S3BodyValue
  /// Adds the fields that need a small body to be read; called on the thread that sends the request.
  var prepare: Exchange.Preparation?

  var checksum: [UInt8]? { value.get() }
}

/// Where the checksum of a body is sent.
enum S3ChecksumPlacement: Sendable {
  /// After the body, which is read once. Only over TLS, and not every server accepts it.
  case trailer
  /// Before the body, which is first read for the checksum.
  case header
  /// Not at all, because the server would not verify it. It is computed during sending, for the receipt.
  case none
}

extension S3Body {
  /// Length of the largest body that the sending thread reads for its checksum. Larger ones are read by another thread,
  /// so that no connection waits for it.
  static let longestPrepared: Int64 = 256 << 10

  /// - `signs`: the SHA-256 of the bytes is part of the signature.
  /// - A body that cannot be read twice is sent without fields that depend on its content.
  static func make(
    _ slice: BlobSlice, _ checksum: Digest.Algorithm, _ vouching: S3ChecksumPlacement, signs: Bool
  ) async throws(UploadError) -> S3Body {
    if vouching != .header, !signs, let length = slice.length, length > 0 {
      return summed(slice, length, checksum, isFramed: vouching == .trailer)
    }
    guard slice.canBeReadTwice else {
      return S3Body(
        headers: ["x-amz-content-sha256": S3Signature.unsignedPayload], slice: slice, value: S3BodyValue(nil))
    }
    if slice.length ?? .max <= longestPrepared {
      let value = S3BodyValue(nil)
      return S3Body(headers: [:], slice: slice, value: value) { request, cancel throws(BlobError) in
        let values = try digests(of: slice, wanted(checksum, signs: signs), cancel)
        value.set(values[0])
        request.headers.add(contentsOf: fields(values, checksum, signs: signs))
      }
    }
    let values = try await digests(of: slice, wanted(checksum, signs: signs))
    return S3Body(headers: fields(values, checksum, signs: signs), slice: slice, value: S3BodyValue(values[0]))
  }

  /// The digests needed before the body is sent: the checksum is first.
  static func wanted(_ checksum: Digest.Algorithm, signs: Bool) -> [Digest.Algorithm] {
    signs && checksum != .sha256 ? [checksum, .sha256] : [checksum]
  }

  /// The fields for the digests that `wanted` lists.
  static func fields(_ values: [[UInt8]], _ checksum: Digest.Algorithm, signs: Bool) -> HTTPHeaders {
    let payload = signs ? Digest.hex(values.last!) : S3Signature.unsignedPayload
    return ["x-amz-content-sha256": payload, checksum.s3Field: base64(values[0]), algorithmField: checksum.s3Name]
  }

  /// Names the checksum. `PutObject` and `UploadPart` require it if an object lock retains objects by default.
  /// https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
  private static let algorithmField = "x-amz-sdk-checksum-algorithm"

  private static func summed(
    _ slice: BlobSlice, _ length: Int64, _ checksum: Digest.Algorithm, isFramed: Bool
  ) -> S3Body {
    let value = S3BodyValue(nil)
    let source = S3SummedSource(slice, length, checksum, isFramed: isFramed) { value.set($0) }
    let headers: HTTPHeaders =
      isFramed
      ? [
        "x-amz-content-sha256": S3Signature.unsignedTrailer, "Content-Encoding": "aws-chunked",
        "x-amz-decoded-content-length": String(length), "x-amz-trailer": checksum.s3Field,
        S3Body.algorithmField: checksum.s3Name,
      ] : ["x-amz-content-sha256": S3Signature.unsignedPayload]
    return S3Body(headers: headers, slice: BlobSlice(source, length: source.length), value: value)
  }
}

private final class S3BodyValue: Sendable {
  private let value: Mutex<[UInt8]?>
  init(_ value: [UInt8]?) { self.value = Mutex(value) }
  func get() -> [UInt8]? { value.withLock { $0 } }
  func set(_ value: [UInt8]) { self.value.withLock { $0 = value } }
}

extension Digest.Algorithm {
  /// The header field of this checksum, such as `x-amz-checksum-crc32c`.
  var s3Field: String { "x-amz-checksum-\(name)" }
  /// The name of this algorithm in S3 requests, such as `CRC32C`.
  var s3Name: String { name.uppercased() }
  /// The checksums of the parts can be combined into that of the whole.
  var isJoinable: Bool { self == .crc32c || self == .crc64nvme }
  /// The algorithms that S3 supports.
  public static let s3 = [crc32c, crc64nvme, sha256, sha1]
}

/// Computes a checksum while its bytes are read once. If framed, the bytes become one chunk of `aws-chunked` with the
/// checksum as a trailer. Nothing is buffered.
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
struct S3SummedSource: BlobSource {
  private let slice: BlobSlice
  private let checksum: Digest.Algorithm
  private let known: @Sendable ([UInt8]) -> Void
  private let head: [UInt8]
  private let isFramed: Bool
  /// Length in bytes, including the framing.
  let length: Int64

  /// `length`: of the slice, above 0. `known` is called with the checksum each time that the bytes were read to their
  /// end.
  init(
    _ slice: BlobSlice, _ length: Int64, _ checksum: Digest.Algorithm, isFramed: Bool,
    _ known: @escaping @Sendable ([UInt8]) -> Void
  ) {
    precondition(length > 0)
    self.slice = slice
    self.checksum = checksum
    self.isFramed = isFramed
    self.known = known
    head = isFramed ? Array("\(String(length, radix: 16))\r\n".utf8) : []
    let tail = isFramed ? Self.tail(checksum, [UInt8](repeating: 0, count: checksum.size)) : []
    self.length = Int64(head.count) + length + Int64(tail.count)
  }

  var access: BlobAccess { slice.source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a body")
    return BlobInfo(length: length)
  }

  /// Only `offset` 0 is supported: the bytes before another offset would have to be read for the checksum.
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard offset == 0 else {
      throw BlobError(.unsupported, "open a body with a checksum at byte \(offset): only its beginning can be")
    }
    let reader = try slice.open(cancel)
    return Reader(reader, head, self, BlobInfo(length: length, readAhead: reader.info.readAhead))
  }

  private static func tail(_ checksum: Digest.Algorithm, _ value: [UInt8]) -> [UInt8] {
    Array("\r\n0\r\n\(checksum.s3Field):\(base64(value))\r\n\r\n".utf8)
  }

  private final class Reader: BlobReader {
    let info: BlobInfo
    private let reader: any BlobReader
    private let checksum: Digest
    private let known: @Sendable ([UInt8]) -> Void
    /// Framing bytes to return next.
    private var framing: ArraySlice<UInt8>
    private var isAtEnd = false
    private let isFramed: Bool
    private var left: Int64?

    init(_ reader: any BlobReader, _ head: [UInt8], _ source: S3SummedSource, _ info: BlobInfo) {
      self.reader = reader
      checksum = Digest(source.checksum)
      known = source.known
      isFramed = source.isFramed
      // The end is recognized at the last byte, because a caller need not read again after it.
      left = source.slice.length
      self.info = info
      framing = head[...]
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if framing.isEmpty, !isAtEnd {
        let count = try reader.read(into: buffer)
        checksum.update(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)))
        left = left.map { $0 - Int64(count) }
        if left == 0 || count == 0 { end() }
        if count > 0 { return count }
      }
      let count = min(framing.count, buffer.count)
      framing.prefix(count).withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
      framing = framing.dropFirst(count)
      return count
    }

    private func end() {
      isAtEnd = true
      let value = checksum.value()
      known(value)
      if isFramed { framing = S3SummedSource.tail(checksum.algorithm, value)[...] }
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
