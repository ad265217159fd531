import Blobs

/// Divides a source into parts. A pure function: the same plan gives the same parts.
///
/// Protocols that use offsets may ask for a part from any offset; protocols with numbered parts store the part size in
/// their session.
public struct PartPlan: Sendable, Hashable {
  /// Total length in bytes; nil while unknown.
  public let length: Int64?
  /// Size of every part in bytes, except for the last one; nil: one part contains all that is left.
  public let partSize: Int64?

  /// `wanted` is the size that the user asked for. The tightest limit applies; a limit on the number of parts makes
  /// them larger.
  public init(length: Int64?, wanted: Int64? = nil, limits: PartLimits = PartLimits()) {
    self.length = length
    // Limits may come from a server or a damaged journal: a part must have at least one byte.
    let largest = limits.largest.map { max(1, $0) }
    var size = wanted.map { max(1, $0) } ?? largest
    if let count = limits.count, count > 0, let length, length > 0, let chosen = size,
      (length - 1) / chosen >= Int64(count)
    {
      // Whole mebibytes, because some servers require parts of round sizes.
      let least = (length - 1) / Int64(count) + 1
      size = ((least - 1) >> 20 + 1).multipliedClamped(by: 1 << 20)
    }
    size = size.map { max($0, limits.smallest) }
    if let largest { size = min(size ?? largest, largest) }
    // No part has `.max` bytes: if no smaller size is allowed, everything is sent in one part.
    partSize = size == .max ? nil : size.map { max(1, $0) }
  }

  /// Parts of this size, as in an earlier run.
  init(length: Int64?, partSize: Int64) {
    self.length = length
    self.partSize = max(1, partSize)
  }

  /// All parts, numbered from 1; an empty source has one empty part. nil: the length or the size is unknown, or there
  /// are more parts than any server accepts.
  func numbered() -> [Part]? {
    guard let length, let size = partSize else { return nil }
    if length <= 0 { return [Part(number: 1, start: 0, length: 0, isLast: true)] }
    let count = (length - 1) / size + 1
    if count > Self.mostNumbered { return nil }
    return (0..<count).compactMap { part(from: $0 * size, number: Int($0) + 1) }
  }

  /// Amazon accepts 10,000.
  private static let mostNumbered: Int64 = 1_000_000

  /// The part that begins at `offset`; nil if nothing is left.
  public func part(from offset: Int64, number: Int) -> Part? {
    guard let length else { return Part(number: number, start: offset, length: partSize, isLast: partSize == nil) }
    let left = length - offset
    if left <= 0 { return nil }
    let size = min(left, partSize ?? left)
    return Part(number: number, start: offset, length: size, isLast: size == left)
  }
}
