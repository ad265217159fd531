import Blobs
import CCrypto

/// A checksum that is fed bytes in order and may be asked at any time.
///
/// Belongs to one thread at a time.
public final class Digest {
  public typealias Algorithm = DigestAlgorithm

  private enum State {
    case libcrypto(OpaquePointer)
    case crc32c(CRC32C)
    case crc64nvme(CRC64NVME)

    init(_ algorithm: Algorithm) {
      switch algorithm {
      case .crc32c: self = .crc32c(CRC32C())
      case .crc64nvme: self = .crc64nvme(CRC64NVME())
      // nil only when memory has run out
      default: self = .libcrypto(EVP_MD_CTX_new()!)
      }
    }
  }
  public let algorithm: Algorithm
  private var state: State

  public init(_ algorithm: Algorithm) {
    self.algorithm = algorithm
    state = State(algorithm)
    reset()
  }

  deinit { if case .libcrypto(let context) = state { EVP_MD_CTX_free(context) } }

  /// Takes the next bytes.
  public func update(_ bytes: UnsafeRawBufferPointer) {
    switch state {
    case .libcrypto(let context):
      let status = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
      precondition(status == 1, "libcrypto: \(algorithm) takes no more bytes")
    case .crc32c(var sum):
      sum.update(bytes)
      state = .crc32c(sum)
    case .crc64nvme(var sum):
      sum.update(bytes)
      state = .crc64nvme(sum)
    }
  }

  /// The checksum of all bytes so far. More may follow.
  public func value() -> [UInt8] {
    switch state {
    case .libcrypto(let context): return value(of: context)
    case .crc32c(let sum): return sum.value
    case .crc64nvme(let sum): return sum.value
    }
  }

  private func value(of context: OpaquePointer) -> [UInt8] {
    let copy = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(copy) }
    var count: UInt32 = 0
    let value = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, written in
      let status = EVP_MD_CTX_copy_ex(copy, context) & EVP_DigestFinal_ex(copy, buffer.baseAddress, &count)
      precondition(status == 1, "libcrypto: \(algorithm) gives no value")
      written = Int(count)
    }
    return value
  }

  /// `value()` in lower-case hexadecimal digits.
  public func hexValue() -> String { Self.hex(value()) }

  /// Begins again, with no bytes.
  public func reset() {
    guard case .libcrypto(let context) = state else {
      state = State(algorithm)
      return
    }
    let status = methods[algorithm.name].map { EVP_DigestInit_ex(context, $0, nil) }
    precondition(status == 1, "libcrypto has no \(algorithm) here")
  }

  /// The checksum of bytes at hand.
  public static func value(of bytes: [UInt8], _ algorithm: Algorithm) -> [UInt8] {
    if let method = methods[algorithm.name] {
      var count: UInt32 = 0
      return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, written in
        let status = EVP_Digest(bytes, bytes.count, buffer.baseAddress, &count, method, nil)
        precondition(status == 1, "libcrypto: \(algorithm) gives no value")
        written = Int(count)
      }
    }
    let digest = Digest(algorithm)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.value()
  }

  public static func hex(of bytes: [UInt8], _ algorithm: Algorithm) -> String { hex(value(of: bytes, algorithm)) }

  /// Two lower-case hexadecimal digits for each byte.
  public static func hex(_ bytes: some Collection<UInt8>) -> String { hexDigits(Array(bytes)) }
}

extension DigestAlgorithm {
  /// Whether it is computed here, and not by libcrypto.
  fileprivate var isOurs: Bool { self == .crc32c || self == .crc64nvme }

  /// The algorithm people call `rawName`: `sha256`, `SHA-256`. nil when we have none of that name, or the system's policy
  /// forbids it (MD5 under FIPS).
  public init?(_ rawName: String) {
    let name = rawName.lowercased().filter { $0 != "-" }
    guard let known = Self.all.first(where: { $0.name == name }) else { return nil }
    self = known
    if !isOurs, methods[name] == nil { return nil }
  }
}

/// libcrypto's ways, by our names; one that the system's policy forbids is missing. To find one takes longer than to
/// digest a short text.
private nonisolated(unsafe) let methods: [String: OpaquePointer] = Dictionary(
  uniqueKeysWithValues: Digest.Algorithm.all.compactMap { algorithm in
    algorithm.isOurs ? nil : EVP_MD_fetch(nil, algorithm.name, nil).map { (algorithm.name, $0) }
  })
