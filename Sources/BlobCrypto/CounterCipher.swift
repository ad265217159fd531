/// AES-256 in counter mode (NIST SP 800-38A), from any byte on: what encrypts also decrypts.
///
/// It belongs to one thread at a time.
package final class CounterCipher {
  private let mode: SystemCounterMode

  /// `key` has 32 bytes; `counter`, of 16, is that of byte 0. `offset` is the byte that `apply` begins with.
  package init(key: [UInt8], counter: [UInt8], at offset: Int64) {
    precondition(key.count == 32 && counter.count == 16 && offset >= 0)
    mode = SystemCounterMode(key: key, counter: Self.advance(counter, by: UInt64(offset / 16)))
    // The keystream of the bytes before `offset` in its block is not wanted.
    var skipped: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &skipped) { apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[..<Int(offset % 16)])) }
  }

  deinit { mode.free() }

  /// Encrypts, or decrypts, the next bytes in place.
  package func apply(to buffer: UnsafeMutableRawBufferPointer) {
    var rest = buffer
    while !rest.isEmpty {
      let piece = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(SystemCounterMode.limit))
      mode.apply(to: piece)
      rest = UnsafeMutableRawBufferPointer(rebasing: rest.dropFirst(piece.count))
    }
  }

  /// A counter is one number of 128 bits, the highest first, and begins again at 0.
  private static func advance(_ counter: [UInt8], by blocks: UInt64) -> [UInt8] {
    var number = counter.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    number &+= UInt128(blocks)
    return (0..<16).map { UInt8(truncatingIfNeeded: number >> (120 - 8 * UInt128($0))) }
  }
}
