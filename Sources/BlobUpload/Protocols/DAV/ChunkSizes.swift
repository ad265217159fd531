import Blobs

/// The chunk sizes of an upload in bytes, in order. Most are equal, so that the text for the journal is short.
struct ChunkSizes: Sendable {
  private var runs: [(size: Int64, count: Int)] = []

  init() {}

  /// Parses `text`; nil: no chunks can have these sizes. "0": there are no chunks.
  init?(_ text: String) {
    for word in text.split(separator: ",") where word != "0" {
      let numbers = word.split(separator: "x", omittingEmptySubsequences: false)
      guard numbers.count <= 2, let size = Int64(digits: String(numbers[0])), size > 0,
        let count = numbers.count == 1 ? 1 : Int64(digits: String(numbers[1])), 1...Self.most ~= count
      else { return nil }
      runs.append((size, Int(count)))
    }
    let (counted, isTooMuch) = (runs.reduce(Int64(0)) { $0.addingClamped(Int64($1.count)) }, bytesOrNil == nil)
    if counted > Self.most || isTooMuch { return nil }
  }

  private static let most: Int64 = 10_000

  /// `67108864x12,5`
  var text: String {
    if runs.isEmpty { return "0" }
    return runs.map { $0.count == 1 ? "\($0.size)" : "\($0.size)x\($0.count)" }.joined(separator: ",")
  }

  var count: Int { runs.reduce(0) { $0 + $1.count } }
  var bytes: Int64 { bytesOrNil ?? .max }
  var all: [Int64] { runs.flatMap { Array(repeating: $0.size, count: $0.count) } }

  mutating func append(_ size: Int64) {
    if runs.last?.size == size { runs[runs.count - 1].count += 1 } else { runs.append((size, 1)) }
  }

  private var bytesOrNil: Int64? {
    var sum: Int64 = 0
    for run in runs {
      let (bytes, isTooMuch) = run.size.multipliedReportingOverflow(by: Int64(run.count))
      let (next, overflows) = sum.addingReportingOverflow(bytes)
      if isTooMuch || overflows { return nil }
      sum = next
    }
    return sum
  }
}
