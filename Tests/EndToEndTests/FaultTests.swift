import Foundation
import Testing

extension EndToEnd {
  /// Runs every fault with every protocol. The results must equal the page `docs/faults.md`. With
  /// `FULLBORE_WRITE_DOCS=1` the page is written instead.
  @Suite(.serialized) struct FaultTests {
    private static let page = Tool.checkout.appendingPathComponent("docs/faults.md")
    /// The number of cells that run at once; they mostly wait.
    private static let atOnce = 6

    @Test func thePageOfFaultsIsTrue() async throws {
      let text = try await Self.write()
      if ProcessInfo.processInfo.environment["FULLBORE_WRITE_DOCS"] == "1" {
        try text.write(to: Self.page, atomically: true, encoding: .utf8)
      }
      let kept = try String(contentsOf: Self.page, encoding: .utf8)
      let (seen, told) = (text.split(separator: "\n"), kept.split(separator: "\n"))
      for (number, line) in seen.enumerated() where number >= told.count || told[number] != line {
        Issue.record("docs/faults.md differs. Seen:\n\(line)\nThe page:\n\(number < told.count ? told[number] : "")")
      }
      #expect(seen.count == told.count, "FULLBORE_WRITE_DOCS=1 swift test --filter FaultTests writes the page")
    }

    private static func write() async throws -> String {
      var rows = [[FaultCell?]](
        repeating: Array(repeating: nil, count: FaultColumn.allCases.count), count: Fault.all.count)
      try await withThrowingTaskGroup(of: (Int, Int, FaultCell?).self) { group in
        var left = Fault.all.indices.flatMap { row in FaultColumn.allCases.indices.map { (row, $0) } }[...]
        func start() {
          guard let (row, column) = left.popFirst() else { return }
          group.addTask { (row, column, try await cell(Fault.all[row], FaultColumn.allCases[column])) }
        }
        for _ in 0..<atOnce { start() }
        while let (row, column, cell) = try await group.next() {
          rows[row][column] = cell
          start()
        }
      }
      var messages = FaultMessages()
      let lines = zip(Fault.all, rows).map { fault, cells in
        let texts = cells.map { $0?.text { messages.number(of: $0) } ?? "–" }
        return "| \(fault.name) | \(texts.joined(separator: " | ")) |\n"
      }
      let columns = FaultColumn.allCases.map(\.rawValue)
      return introduction + "| fault | \(columns.joined(separator: " | ")) |\n"
        + "|---|\(columns.map { _ in "---|" }.joined())\n" + lines.joined() + "\n## Messages\n\n"
        + messages.texts.enumerated().map { "\($0 + 1). “\($1)”\n" }.joined()
    }

    /// nil: the fault does not exist in this protocol.
    private static func cell(_ fault: Fault, _ column: FaultColumn) async throws -> FaultCell? {
      let bench = try FaultBench()
      guard let push = try await fault.play(column, bench) else { return nil }
      return try await bench.cell(of: push)
    }

    private static let introduction = """
      # When things go wrong

      What `fullbore push video.mov http://nas:8080/` says and leaves, for each fault and protocol. `FaultTests` plays
      them all and fails where this page is not what it saw; `FULLBORE_WRITE_DOCS=1 swift test --filter FaultTests`
      writes the page. The limits are short there (`--retries 1 --timeout 1s --finish-timeout 2s`), so the numbers
      are small; N stands for numbers that depend on the network.

      Exit status: 0 everything is there, 1 this file failed and others go on, 3 the destination cannot be reached or
      refuses us. "Here" is what the journal knows for the next run; "there" what is in the server's folder, where it is
      `fullbore serve`. A name never stands for a part of a file.

      A number in bold is that of a message in the list below the table, which has each message once. Before the message
      stand "fullbore: ", the name of the file if one was begun, and the request, which the table has: the message of
      `PUT /video.mov` begins with "fullbore: video.mov: PUT http://nas:8080/video.mov: ". "Tried again": the message
      also says "(gave up after 2 failures in a row)".


      """
  }
}
