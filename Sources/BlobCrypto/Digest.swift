import Blobs

/// A checksum of bytes that are added in order. Its value may be asked for at any time.
///
/// It belongs to one thread at a time.
public final class Digest {
  /// The name and size of a checksum.
  public typealias Algorithm = DigestAlgorithm

  private enum State {
    case system(SystemDigest)
    case crc32c(CRC32C)
    case crc64nvme(CRC64NVME)
    case xxHash(XXHash)

    init(_ algorithm: Algorithm) {
      switch algorithm {
      case .crc32c: self = .crc32c(CRC32C())
      case .crc64nvme: self = .crc64nvme(CRC64NVME())
      case .xxh64, .xxh3, .xxh128: self = .xxHash(XXHash(algorithm))
      default: self = .system(SystemDigest(algorithm))
      }
    }

    func free() {
      switch self {
      case .system(let digest): digest.free()
      case .xxHash(let digest): digest.free()
      case .crc32c, .crc64nvme: break
      }
    }
  }
  /// The algorithm that the digest was created with.
  public let algorithm: Algorithm
  private var state: State

  /// Traps where the system's libraries do not have the algorithm: `Algorithm.init(_:)` tells.
  public init(_ algorithm: Algorithm) {
    self.algorithm = algorithm
    state = State(algorithm)
  }

  deinit { state.free() }

  /// Adds the next bytes.
  public func update(_ bytes: UnsafeRawBufferPointer) {
    switch state {
    case .system(var digest):
      digest.update(bytes)
      state = .system(digest)
    case .crc32c(var sum):
      sum.update(bytes)
      state = .crc32c(sum)
    case .crc64nvme(var sum):
      sum.update(bytes)
      state = .crc64nvme(sum)
    case .xxHash(let digest): digest.update(bytes)
    }
  }

  /// The checksum of all bytes so far. More may follow.
  public func value() -> [UInt8] {
    switch state {
    case .system(let digest): digest.value()
    case .crc32c(let sum): sum.value
    case .crc64nvme(let sum): sum.value
    case .xxHash(let digest): digest.value()
    }
  }

  /// `value()` in lower-case hexadecimal digits.
  public func hexValue() -> String { Self.hex(value()) }

  /// Begins again, with no bytes.
  public func reset() {
    state.free()
    state = State(algorithm)
  }

  /// The checksum of bytes in memory.
  public static func value(of bytes: [UInt8], _ algorithm: Algorithm) -> [UInt8] {
    if !algorithm.isOurs { return SystemDigest.value(of: bytes, algorithm) }
    let digest = Digest(algorithm)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.value()
  }

  /// The digest of `bytes` as lowercase hexadecimal digits.
  public static func hex(of bytes: [UInt8], _ algorithm: Algorithm) -> String { hex(value(of: bytes, algorithm)) }

  /// Two lower-case hexadecimal digits for each byte.
  public static func hex(_ bytes: some Collection<UInt8>) -> String { hexDigits(Array(bytes)) }
}

extension DigestAlgorithm {
  /// Whether something else computes it than the system's library for digests: this module, or xxHash's library.
  var isOurs: Bool { [.crc32c, .crc64nvme].contains(self) || isXXHash }

  private var isXXHash: Bool { [.xxh64, .xxh3, .xxh128].contains(self) }

  /// The algorithm people call `rawName`: `sha256`, `SHA-256`. nil when there is none of that name, or the system's library
  /// does not have it: libcrypto has no MD5 under FIPS, Apple's libraries have no BLAKE2 and
  /// no xxHash.
  public init?(_ rawName: String) {
    let name = rawName.lowercased().filter { $0 != "-" }
    guard let known = Self.all.first(where: { $0.name == name }) else { return nil }
    self = known
    if isXXHash ? !XXHash.isKnown : !isOurs && !SystemDigest.isKnown(self) { return nil }
  }
}

extension Digest {
  /// Adds all bytes of a source to each of the digests. This call blocks. `noteRead` is called with the number of bytes
  /// of each read.
  package static func read(
    _ source: any BlobSource, into digests: [Digest], _ cancel: Cancellation = Cancellation(),
    noteRead: (Int) -> Void = { _ in }
  ) throws(BlobError) {
    let reader = try source.open(at: 0, cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      try cancel.check("read the file")
      let count = try reader.read(into: buffer)
      if count == 0 { break }
      noteRead(count)
      for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
    }
    try reader.finish()
  }
}
