import Blobs

#if !canImport(CryptoKit)
  import CXXHash
#endif

/// The running digest of one of xxHash's algorithms. Its owner calls `free` when it is done with it. It belongs to one thread at
/// a time.
struct XXHash {
  #if canImport(CryptoKit)
    /// Apple's libraries have no xxHash.
    static let isKnown = false

    init(_ algorithm: DigestAlgorithm) { preconditionFailure("there is no \(algorithm) here") }
    func free() {}
    func update(_ bytes: UnsafeRawBufferPointer) {}
    func value() -> [UInt8] { [] }
  #else
    static let isKnown = true
    private let algorithm: DigestAlgorithm
    private let state: OpaquePointer

    init(_ algorithm: DigestAlgorithm) {
      self.algorithm = algorithm
      // nil only when memory has run out.
      state = (algorithm == .xxh64 ? XXH64_createState() : XXH3_createState())!
      let status =
        switch algorithm {
        case .xxh64: XXH64_reset(state, 0)
        case .xxh3: XXH3_64bits_reset(state)
        default: XXH3_128bits_reset(state)
        }
      precondition(status == XXH_OK, "libxxhash does not begin")
    }

    func free() { _ = algorithm == .xxh64 ? XXH64_freeState(state) : XXH3_freeState(state) }

    func update(_ bytes: UnsafeRawBufferPointer) {
      guard let start = bytes.baseAddress else { return }
      let status =
        switch algorithm {
        case .xxh64: XXH64_update(state, start, bytes.count)
        case .xxh3: fb_xxh3_64_update(state, start, bytes.count)
        default: fb_xxh3_128_update(state, start, bytes.count)
        }
      precondition(status == XXH_OK, "libxxhash takes no more bytes")
    }

    /// The most significant byte comes first, as in xxHash's canonical form.
    func value() -> [UInt8] {
      switch algorithm {
      case .xxh64: return Self.bytes(XXH64_digest(state))
      case .xxh3: return Self.bytes(XXH3_64bits_digest(state))
      default:
        let value = XXH3_128bits_digest(state)
        return Self.bytes(value.high64) + Self.bytes(value.low64)
      }
    }

    private static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
  #endif
}

/// The library of xxHash and its version, for `--version`; nil: there is none here.
package var hashLibrary: String? {
  #if canImport(CryptoKit)
    nil
  #else
    // 801 is 0.8.1.
    { "xxHash \($0 / 10_000).\($0 / 100 % 100).\($0 % 100)" }(XXH_versionNumber())
  #endif
}
