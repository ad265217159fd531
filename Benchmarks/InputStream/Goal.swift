import Foundation

/// A number and what it should be, for bench.py.
struct Goal {
  enum Relation: String { case atLeast = ">=", atMost = "<=" }

  private let fields: [String: Any]

  init(_ what: String, _ value: Double, _ relation: Relation, _ goal: Double, _ unit: String = "") {
    fields = ["what": what, "value": value, "relation": relation.rawValue, "goal": goal, "unit": unit]
  }

  func say() {
    guard let line = try? JSONSerialization.data(withJSONObject: fields, options: .sortedKeys) else {
      fatalError("not a number: \(fields)")
    }
    FileHandle.standardOutput.write(line + Data("\n".utf8))
  }
}

/// How long things took, in milliseconds.
struct Times {
  private var sorted: [Double]

  init(_ times: [Duration]) { sorted = times.map { $0 / .milliseconds(1) }.sorted() }

  var count: Int { sorted.count }
  var median: Double { sorted[sorted.count / 2] }
  var p99: Double { sorted[sorted.count * 99 / 100] }
  var longest: Double { sorted.last! }
}
