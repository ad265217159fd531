import BlobStreams
import Blobs
import Foundation

/// Checks of seeking with `.fileCurrentOffsetKey`.
extension StreamCheck {
  static let offsets = [
    StreamCheck("the offset can be any whole number from 0, at any time", goesToAnyOffset),
    StreamCheck("an offset that is set while it is opened counts", goesThereWhileOpening),
    StreamCheck("what is refused as an offset changes nothing", refusesOtherOffsets),
    StreamCheck("past the end there is an error, not an end", failsPastTheEnd),
  ]

  private static func goesToAnyOffset(_ exam: StreamCheckContext) throws {
    let length = exam.fixture.length
    guard exam.fixture.access == .random else { return }
    for offset in Set([0, 1, length / 3, length - 1, length]).sorted() where 0...length ~= offset {
      let (stream, _) = try exam.makeStream(block: 100)
      try require(stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey), "\(offset) is refused")
      stream.schedule(in: exam.loop, forMode: .default)
      stream.open()
      try exam.compare(stream, from: offset, to: min(offset + 500, length))
      for other in Set([length / 2, 0, offset, length]).sorted() {
        try require(stream.setProperty(NSNumber(value: other), forKey: .fileCurrentOffsetKey), "\(other) is refused")
        let found = stream.property(forKey: .fileCurrentOffsetKey) as? Int64
        try require(found == other, "set to \(other), the offset is \(found as Any)")
        try exam.compare(stream, from: other, to: min(other + 150, length))
        if other == length { try require(try exam.read(stream, 10) == [], "a read at the end is not 0") }
      }
    }
  }

  private static func goesThereWhileOpening(_ exam: StreamCheckContext) throws {
    guard exam.fixture.access == .random else { return }
    let target = exam.fixture.length / 2
    let gate = ThreadGate()
    let source = GatedSource(source: try exam.fixture.make(), gate: gate, at: .opening)
    let stream =
      exam.isAsynchronous ? BlobInputStream(source, asynchronous: true) : BlobInputStream.forMultipart(source)
    stream.open()
    try require(gate.awaitVisitor(), "nobody opens the source")
    for offset in [exam.fixture.length, 0, target] {
      try require(stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey), "\(offset) is refused")
    }
    gate.open()
    try exam.compare(stream, from: target, to: min(target + 500, exam.fixture.length))
  }

  private static func refusesOtherOffsets(_ exam: StreamCheckContext) throws {
    let (stream, _) = try exam.makeStream()
    let refused: [NSObject?] = [
      nil, NSString(string: "7"), NSNumber(value: -1), NSNumber(value: UInt64.max), NSNumber(value: Int64.min),
      NSNumber(value: 2.5), NSNumber(value: 1e30), NSNumber(value: Double.nan), NSArray(), NSNull(),
    ]
    func tryAll(_ when: String) throws {
      let offset = stream.property(forKey: .fileCurrentOffsetKey) as? Int64
      for value in refused {
        let isTaken = stream.setProperty(value, forKey: .fileCurrentOffsetKey)
        try require(!isTaken, "\(value as Any) was taken \(when)")
        let now = stream.property(forKey: .fileCurrentOffsetKey) as? Int64
        try require(now == offset, "\(value as Any) moved the offset \(when)")
      }
    }
    try tryAll("before open")
    stream.schedule(in: exam.loop, forMode: .default)
    stream.open()
    let some = min(3, exam.fixture.length)
    try exam.compare(stream, to: some)
    try tryAll("while it is open")
    try exam.compare(stream, from: some, to: min(10, exam.fixture.length))
    stream.close()
    try tryAll("after close")
    try require(!stream.setProperty(NSNumber(value: 0), forKey: .fileCurrentOffsetKey), "taken after close")
  }

  private static func failsPastTheEnd(_ exam: StreamCheckContext) throws {
    guard exam.fixture.access == .random else { return }
    for offset in [exam.fixture.length + 1, .max] {
      for opensFirst in [false, true] {
        let (stream, events) = try exam.makeStream()
        stream.schedule(in: exam.loop, forMode: .default)
        if opensFirst { stream.open() }
        try require(stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey), "\(offset) is refused")
        stream.open()
        try require(try exam.read(stream, 10) == nil, "a read past the end is not -1")
        try exam.requireError(stream, .outOfRange, "read at \(offset)")
        try exam.run("the error") { events.heard(.errorOccurred) }
      }
    }
  }
}
