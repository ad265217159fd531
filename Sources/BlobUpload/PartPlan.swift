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
    if let count = limits.count, let length, let chosen = size {
      size = max(chosen, (length + Int64(count) - 1) / Int64(count))
    }
    size = size.map { max($0, limits.smallest) }
    if let largest = limits.largest { size = min(size ?? largest, largest) }
    // Where no part may be small enough to leave a rest, there is one.
    partSize = size == .max ? nil : size
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
