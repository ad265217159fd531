import Blobs

/// Cuts a source into parts. Pure: the same plan gives the same parts.
///
/// Dialects that count by offset may ask from any offset; numbered ones keep the plan's numbers in their session.
public struct PartPlan: Sendable, Hashable {
  /// Bytes of the whole; nil while unknown.
  public let length: Int64?
  /// Bytes of every part but the last; nil: all that is left goes in one.
  public let partSize: Int64?

  /// `wanted` is what the user asked for; the tightest limit wins, and a limit on the count makes parts larger.
  public init(length: Int64?, wanted: Int64? = nil, limits: PartLimits = PartLimits()) {
    self.length = length
    // Limits may come from a server or a damaged journal: a part has a byte at least.
    let largest = limits.largest.map { max(1, $0) }
    var size = wanted.map { max(1, $0) } ?? largest
    if let count = limits.count, count > 0, let length, length > 0, let chosen = size,
      (length - 1) / chosen >= Int64(count)
    {
      // Whole mebibytes: some servers want parts of round sizes.
      let least = (length - 1) / Int64(count) + 1
      size = ((least - 1) >> 20 + 1).multipliedClamped(by: 1 << 20)
    }
    size = size.map { max($0, limits.smallest) }
    if let largest { size = min(size ?? largest, largest) }
    // No part is so large: where none may be smaller, there is one.
    partSize = size == .max ? nil : size.map { max(1, $0) }
  }

  /// Parts of this size, as an earlier run had them.
  init(length: Int64, partSize: Int64) {
    self.length = length
    self.partSize = max(1, partSize)
  }

  /// Every part, with numbers from 1 up; a source without bytes is one empty part. nil: the length or the size is open, or
  /// there are more parts than any server takes.
  func numbered() -> [Part]? {
    guard let length, let size = partSize else { return nil }
    if length <= 0 { return [Part(number: 1, start: 0, length: 0, isLast: true)] }
    let count = (length - 1) / size + 1
    if count > Self.mostNumbered { return nil }
    return (0..<count).compactMap { part(from: $0 * size, number: Int($0) + 1) }
  }

  /// Amazon takes 10,000.
  private static let mostNumbered: Int64 = 1_000_000

  /// The part that begins at `offset`; nil when nothing is left.
  public func part(from offset: Int64, number: Int) -> Part? {
    guard let length else { return Part(number: number, start: offset, length: partSize, isLast: partSize == nil) }
    let left = length - offset
    if left <= 0 { return nil }
    let size = min(left, partSize ?? left)
    return Part(number: number, start: offset, length: size, isLast: size == left)
  }
}
