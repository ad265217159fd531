/// A picture that is a function of its seed: two colours, a sun, and a grain as film has it.
struct Painting {
  let width: Int
  let height: Int
  private let from: [Int]
  private let to: [Int]
  private let sun: (x: Int, y: Int, radius: Int)
  private var grain: SeededGenerator

  init(width: Int, height: Int, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    self.width = width
    self.height = height
    from = (0..<3).map { _ in Int.random(in: 20...140, using: &random) }
    to = (0..<3).map { _ in Int.random(in: 90...230, using: &random) }
    sun = (
      Int.random(in: 0..<width, using: &random), Int.random(in: 0..<height, using: &random),
      max(8, height / Int.random(in: 3...6, using: &random))
    )
    grain = random
  }

  /// Puts the next row into `row`, which has three bytes for each pixel.
  mutating func paint(_ y: Int, into row: inout [UInt8]) {
    let (width, square, sun) = (width, sun.radius * sun.radius, sun)
    let (start, step) = ((y << 15) / height, (1 << 15) / width)
    var bits = grain.next()
    let (red, green, blue) = ((from[0], to[0] - from[0]), (from[1], to[1] - from[1]), (from[2], to[2] - from[2]))
    row.withUnsafeMutableBufferPointer { row in
      for x in 0..<width {
        bits = bits &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let share = start + x * step
        let distance = (x - sun.x) * (x - sun.x) + (y - sun.y) * (y - sun.y)
        let glow = distance < square ? 90 * (square - distance) / square : 0
        let light = glow + Int(bits >> 61)
        row[3 * x] = UInt8(clamping: red.0 + (red.1 * share >> 16) + light)
        row[3 * x + 1] = UInt8(clamping: green.0 + (green.1 * share >> 16) + light)
        row[3 * x + 2] = UInt8(clamping: blue.0 + (blue.1 * share >> 16) + light / 2)
      }
    }
  }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
