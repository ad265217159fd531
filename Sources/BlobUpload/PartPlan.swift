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
    var size = wanted ?? limits.largest
    if let count = limits.count, let length, let chosen = size, (length - 1) / chosen >= Int64(count) {
      // Whole mebibytes: some servers want parts of round sizes.
      let least = (length - 1) / Int64(count) + 1
      size = ((least - 1) >> 20 + 1) << 20
    }
    size = size.map { max($0, limits.smallest) }
    if let largest = limits.largest { size = min(size ?? largest, largest) }
    // No part is so large: where none may be smaller, there is one.
    partSize = size == .max ? nil : size
  }

  /// Parts of this size, as an earlier run had them.
  init(length: Int64, partSize: Int64) {
    self.length = length
    self.partSize = max(1, partSize)
  }

  /// Every part, with numbers from 1 up; a source without bytes is one empty part. nil: the length or the size is open.
  func numbered() -> [Part]? {
    guard let length, let size = partSize else { return nil }
    if length == 0 { return [Part(number: 1, start: 0, length: 0, isLast: true)] }
    return stride(from: 0, to: length, by: Int64.Stride(size)).enumerated().compactMap { index, start in
      part(from: start, number: index + 1)
    }
  }

  /// The part that begins at `offset`; nil when nothing is left.
  public func part(from offset: Int64, number: Int) -> Part? {
    guard let length else { return Part(number: number, start: offset, length: partSize, isLast: partSize == nil) }
    let left = length - offset
    if left <= 0 { return nil }
    let size = min(left, partSize ?? left)
    return Part(number: number, start: offset, length: size, isLast: size == left)
  }
}
