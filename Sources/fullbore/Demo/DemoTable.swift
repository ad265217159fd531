/// One push of the demo, as the last table tells it.
struct DemoRun: Sendable, Hashable {
  var title: String
  var files = 0
  var bytes: Int64 = 0
  /// Of the process, from its start to its end; of both where it was killed and ran again.
  var elapsed: Duration = .zero
  var peakMemory: Int64 = 0
  /// What the kernel counts for the process, the journal with it; 0 where the file system does not count.
  var written: Int64 = 0
  /// Names that appeared in the folder for temporary files.
  var temporaryFiles = 0
  var compared: Int64 = 0
}

/// Figures in columns, one for each run.
enum DemoTable {
  static func text(_ runs: [DemoRun]) -> String {
    let rows: [(String, [String])] = [
      ("", runs.map { $0.title }),
      ("files", runs.map { Quantity.grouped($0.files) }),
      ("bytes", runs.map { Quantity.grouped($0.bytes) }),
      ("seconds", runs.map { Quantity.fixed(Quantity.seconds($0.elapsed), decimals: 2) }),
      ("rate", runs.map { Quantity.text(bytesPerSecond: Double($0.bytes) / max(Quantity.seconds($0.elapsed), 0.001)) }),
      ("peak memory of the pushing process", runs.map { Quantity.text(bytes: $0.peakMemory) }),
      ("bytes in temporary files", runs.map { $0.temporaryFiles == 0 ? "0" : "\($0.temporaryFiles) files made" }),
      ("written to disk, journal included", runs.map { Quantity.text(bytes: $0.written) }),
      ("bytes compared, equal", runs.map { $0.compared == $0.bytes ? "all" : Quantity.grouped($0.compared) }),
    ]
    let widths = runs.indices.map { column in rows.map { columns(of: $0.1[column]) }.max() ?? 0 }
    let first = rows.map { columns(of: $0.0) }.max() ?? 0
    return rows.map { title, cells in
      var line = title + spaces(first - columns(of: title))
      for (cell, width) in zip(cells, widths) { line += "   " + spaces(width - columns(of: cell)) + cell }
      return line + "\n"
    }.joined()
  }

  private static func spaces(_ count: Int) -> String { String(repeating: " ", count: max(0, count)) }
}
