/// A number modulo 2^255 - 19. For public keys only: how long a computation takes depends on the numbers.
struct Curve25519Field {
  /// The lowest 64 bits first; not always below the modulus.
  private var limbs: [UInt64]

  private init(limbs: [UInt64]) { self.limbs = limbs }

  /// `bytes`, of which there are 32, begin with the lowest. nil: they are not below the modulus.
  init?(_ bytes: [UInt8]) {
    precondition(bytes.count == 32)
    limbs = (0..<4).map { limb in (0..<8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64(bytes[8 * limb + $1]) } }
    if Self.subtract(Self.modulus, from: limbs) != nil { return nil }
  }

  /// The u coordinate, on Curve25519, of the point of edwards25519 with this y coordinate: (1 + y) / (1 - y). RFC 7748
  /// §4.1. nil: there is none.
  var montgomery: Curve25519Field? {
    let one = Curve25519Field(limbs: [1, 0, 0, 0])
    // 1 - y is 1 + (modulus - y), since y is below the modulus.
    let divisor = one.adding(Curve25519Field(limbs: Self.subtract(limbs, from: Self.modulus) ?? Self.modulus))
    if divisor.bytes.allSatisfy({ $0 == 0 }) { return nil }
    return adding(one).multiplied(by: divisor.inverse)
  }

  /// 32 bytes, the lowest first, of a number below the modulus.
  var bytes: [UInt8] {
    var rest = limbs
    while let less = Self.subtract(Self.modulus, from: rest) { rest = less }
    return rest.flatMap { limb in (0..<8).map { UInt8(truncatingIfNeeded: limb >> (8 * UInt64($0))) } }
  }

  private static let modulus: [UInt64] = [.max - 18, .max, .max, .max >> 1]

  /// nil: the result would be negative.
  private static func subtract(_ a: [UInt64], from b: [UInt64]) -> [UInt64]? {
    var borrow: UInt64 = 0
    var result: [UInt64] = []
    for (a, b) in zip(a, b) {
      let (first, isLess) = b.subtractingReportingOverflow(a)
      let (second, isLessToo) = first.subtractingReportingOverflow(borrow)
      result.append(second)
      borrow = isLess || isLessToo ? 1 : 0
    }
    return borrow == 0 ? result : nil
  }

  private func adding(_ other: Curve25519Field) -> Curve25519Field {
    Self.reduced(limbs, plus: other.limbs, times: 1)
  }

  private func multiplied(by other: Curve25519Field) -> Curve25519Field {
    var product = [UInt64](repeating: 0, count: 8)
    for i in 0..<4 {
      var carry: UInt64 = 0
      for j in 0..<4 {
        let sum = UInt128(limbs[i]) * UInt128(other.limbs[j]) + UInt128(product[i + j]) + UInt128(carry)
        product[i + j] = UInt64(truncatingIfNeeded: sum)
        carry = UInt64(sum >> 64)
      }
      product[i + 4] = carry
    }
    // 2^256 is 38 modulo 2^255 - 19.
    return Self.reduced(Array(product[..<4]), plus: Array(product[4...]), times: 38)
  }

  /// `low` + `high` * `factor`, where `factor` is small.
  private static func reduced(_ low: [UInt64], plus high: [UInt64], times factor: UInt64) -> Curve25519Field {
    var (sum, carry): ([UInt64], UInt64) = ([], 0)
    for (low, high) in zip(low, high) {
      let limb = UInt128(high) * UInt128(factor) + UInt128(low) + UInt128(carry)
      sum.append(UInt64(truncatingIfNeeded: limb))
      carry = UInt64(limb >> 64)
    }
    return carry == 0 ? Curve25519Field(limbs: sum) : reduced(sum, plus: [carry, 0, 0, 0], times: 38)
  }

  /// By Fermat: to the power of 2^255 - 21, whose bits are all 1 except the second and the fourth.
  private var inverse: Curve25519Field {
    var result = Curve25519Field(limbs: [1, 0, 0, 0])
    for bit in (0..<255).reversed() {
      result = result.multiplied(by: result)
      if bit != 2, bit != 4 { result = result.multiplied(by: self) }
    }
    return result
  }
}
