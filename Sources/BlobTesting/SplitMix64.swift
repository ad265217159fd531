/// A small random number generator whose output is determined by its seed. Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014.
package struct SplitMix64: RandomNumberGenerator, Sendable {
  private static let step: UInt64 = 0x9E37_79B9_7F4A_7C15
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    defer { state &+= Self.step }
    return Self.mixed(state)
  }

  /// The number that follows `state`: a bijective mixing function of 64-bit numbers.
  static func mixed(_ state: UInt64) -> UInt64 {
    var z = state &+ step
    z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z &>> 31)
  }
}
