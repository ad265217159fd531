import Foundation

/// A JPEG of 10,000 by 10,000 pixels, made of repeated rows, so that it is never in memory as a whole.
enum TallPicture {
  private static let width = 10_000
  /// Rows of different blocks; between them are restart markers, numbered 0 to 7.
  private static let rows = 16

  static func write(to path: String, in scratch: Scratch) throws {
    let strip = try makeStrip(in: scratch)
    guard let scan = strip.range(of: Data([0xFF, 0xDA])), let frame = strip.range(of: Data([0xFF, 0xC0])) else {
      throw Command.Failure("cjpeg made something else")
    }
    let start = scan.lowerBound + 2 + Int(strip[scan.upperBound]) << 8 + Int(strip[scan.upperBound + 1])
    var head = strip[..<start]
    head.replaceSubrange(
      (frame.upperBound + 3)..<(frame.upperBound + 5), with: [UInt8(width >> 8), UInt8(width & 0xFF)])
    let pieces = split(strip[start..<(strip.endIndex - 2)])
    guard pieces.count == rows else { throw Command.Failure("\(pieces.count) rows of blocks instead of \(rows)") }
    try head.write(to: URL(fileURLWithPath: path))
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.seekToEnd()
    let count = (width + 15) / 16
    for row in 0..<count {
      try file.write(contentsOf: pieces[row % rows])
      try file.write(contentsOf: Data(row == count - 1 ? [0xFF, 0xD9] : [0xFF, 0xD0 + UInt8(row % 8)]))
    }
    try file.close()
  }

  private static func makeStrip(in scratch: Scratch) throws -> Data {
    var random = Seeded(7)
    var picture = Data("P6\n\(width) \(rows * 16)\n255\n".utf8)
    for y in 0..<(rows * 16) {
      for x in 0..<width {
        let noise = UInt8(random.next() & 15)
        picture.append(contentsOf: [UInt8((x / 40 + y) & 0xFF), UInt8((x / 7) & 0xF0) | noise, UInt8(y & 0xF0) | noise])
      }
    }
    try picture.write(to: URL(fileURLWithPath: scratch.path("strip.ppm")))
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Peer.cjpeg.path ?? "cjpeg")
    process.arguments = [
      "-quality", "90", "-sample", "2x2", "-restart", "1", "-outfile", scratch.path("strip.jpg"),
      scratch.path("strip.ppm"),
    ]
    try process.run()
    process.waitUntilExit()
    return try Data(contentsOf: URL(fileURLWithPath: scratch.path("strip.jpg")))
  }

  private static func split(_ scan: Data) -> [Data] {
    var pieces: [Data] = []
    var start = scan.startIndex
    var place = start
    while place + 1 < scan.endIndex {
      if scan[place] == 0xFF, (0xD0...0xD7).contains(scan[place + 1]) {
        pieces.append(scan[start..<place])
        start = place + 2
        place += 1
      }
      place += 1
    }
    return pieces + [scan[start...]]
  }
}
