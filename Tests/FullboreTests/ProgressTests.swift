import Blobs
import Testing

@testable import BlobUpload
@testable import fullbore

/// The progress that a person sees: bars, totals, and the time left.
@Suite struct ProgressTests {
  private let plain = TerminalStyle(isUnicode: true, hasColor: false)

  private func film(sent: Int64, of length: Int64?) -> PushedFile {
    let file = PushedFile(path: "/card/film.mov", relative: "2024/Küste/漢字漢字漢字漢字漢字.mov", length: length)
    file.progress.advance(by: sent)
    return file
  }

  @Test(arguments: [1, 5, 10, 20, 35, 36, 40, 59, 60, 80, 200]) func linesOfFilesFitTheTerminal(_ width: Int) {
    for length in [10 << 20, 0, nil] as [Int64?] {
      let line = ProgressBoard.line(for: film(sent: 4 << 20, of: length), width: width, plain)
      #expect(columns(of: line) <= width, "\(width): \(line)")
      let colored = ProgressBoard.line(for: film(sent: 4 << 20, of: length), width: width, TerminalStyle())
      #expect(colored.replacing(/\u{1B}\[[0-9;]*m/, with: "") == line, "\(width): \(colored)")
    }
  }

  @Test func aFileHasABarFrom40ColumnsOn() {
    let film = film(sent: 4 << 20, of: 10 << 20)
    #expect(ProgressBoard.line(for: film, width: 40, plain).hasSuffix("  ━━━━──────  40 %"))
    #expect(
      ProgressBoard.line(for: film, width: 80, plain).hasSuffix("  ━━━━━━━━────────────  40 % of  10.0 MiB"))
    let ascii = TerminalStyle(isUnicode: false, hasColor: false)
    #expect(ProgressBoard.line(for: film, width: 40, ascii).hasSuffix("  ####------  40 %"))
  }

  /// The server has not confirmed the last bytes yet.
  @Test func nothingThatIsUnfinishedHas100Percent() {
    #expect(ProgressBoard.line(for: film(sent: 10 << 20, of: 10 << 20), width: 80, plain).contains("  99 % of"))
    #expect(ProgressBoard.line(for: film(sent: 0, of: 0), width: 80, plain).contains("   0 % of"))
    let counters = PushCounters()
    counters.found(length: 1000)
    counters.isListed.store(true, ordering: .relaxed)
    var figures = ProgressFigures()
    #expect(figures.line(counters, running: 1000, at: 0).hasSuffix(", 99 %"))
  }

  @Test func aFolderThatIsStillReadHasAPlusAndALeastTime() {
    let counters = PushCounters()
    counters.found(length: 100 << 20)
    var figures = ProgressFigures()
    var line = ""
    for second in 0...10 {
      let progress = UploadProgress(totals: counters.bytes)
      progress.advance(by: second > 0 ? 1 << 20 : 0)
      line = figures.line(counters, running: Int64(second) << 20, at: Double(second))
    }
    #expect(line == "0 of 1+ files, 10.0 MiB of 100 MiB+, 1.00 MiB/s, at least 90 s left", "\(line)")
    counters.isListed.store(true, ordering: .relaxed)
    line = figures.line(counters, running: 10 << 20, at: 10.1)
    #expect(line.hasPrefix("0 of 1 files, 10.0 MiB of 100 MiB, 10 %, ") && line.hasSuffix(" 90 s left"), "\(line)")
    for width in [5, 10, 20, 30, 40, 50, 60] {
      let narrow = figures.line(counters, running: 10 << 20, width: width, at: 10.2)
      #expect(columns(of: narrow) <= width)
      if width >= 40 { #expect(narrow.contains("10 %") && narrow.hasSuffix("s left"), "\(narrow)") }
    }
  }

  @Test func aComparisonShowsWhatItHasRead() {
    let counters = PushCounters(readsOnly: true)
    for length in [10 << 20, 90 << 20] as [Int64] { counters.found(length: length) }
    counters.listed()
    var figures = ProgressFigures()
    counters.comparedBytes.add(10 << 20, ordering: .relaxed)
    counters.compared(length: 10 << 20, isRead: true)
    _ = figures.line(counters, running: 0, at: 0)
    counters.comparedBytes.add(40 << 20, ordering: .relaxed)
    let line = figures.line(counters, running: 0, at: 10)
    #expect(line == "1 of 2 files, 50.0 MiB of 100 MiB, 50 %, 4.00 MiB/s, 15 s left")
  }

  /// The list of a server's folder has no lengths.
  @Test func filesOfUnknownLengthsHaveNoWhole() {
    let counters = PushCounters(readsOnly: true)
    counters.count { $0.found += 3 }
    var figures = ProgressFigures()
    counters.comparedBytes.add(5 << 20, ordering: .relaxed)
    #expect(figures.line(counters, running: 0, at: 0) == "0 of 3+ files, 5.00 MiB")
  }

  /// The speed alternates between 1 and 9 MB/s, so an estimate by the speed alone would jump by a factor of nine.
  @Test func theTimeLeftDoesNotJump() {
    var remaining = RemainingTime()
    var bytes: Int64 = 3_000_000_000
    var times: [Double] = []
    for second in 0..<300 {
      let speed: Int64 = second % 20 < 10 ? 1_000_000 : 9_000_000
      bytes -= speed
      times.append(remaining.update(bytes, bytesPerSecond: Double(speed), at: Double(second)) ?? -1)
    }
    for (before, after) in zip(times, times.dropFirst()).dropFirst(60) {
      #expect(abs(after - before) < max(before, after) * 0.35, "\(before) to \(after)")
    }
    #expect(remaining.update(bytes, bytesPerSecond: 0, at: 301) == nil)
    // With a constant speed it counts down to nothing.
    for second in 0..<100 {
      let left = remaining.update(Int64(100 - second) * 1000, bytesPerSecond: 1000, at: 400 + Double(second))
      #expect(abs((left ?? -1) - Double(100 - second)) < 0.001)
    }
  }

  @Test(arguments: [
    (0.0, "1 s"), (6.2, "7 s"), (10.0, "10 s"), (11, "15 s"), (61, "65 s"), (89, "90 s"), (91, "2 min"),
    (600, "10 min"),
    (5400, "1 h 30 min"), (7200, "2 h"), (7340, "2 h"), (7510, "2 h 5 min"), (360_000, "100 h"),
  ])
  func theTimeLeftIsRound(_ seconds: Double, _ text: String) { #expect(ProgressFigures.text(left: seconds) == text) }

  @Test func aLongReasonIsReadInSeveralLines() {
    let reason = "media.example:8080 does not answer since 20:56:02 (connection refused), trying again in 12 s"
    #expect(wrapped(reason, 120, most: 3) == [reason])
    #expect(
      wrapped(reason, 40, most: 3) == [
        "media.example:8080 does not answer since", "20:56:02 (connection refused), trying", "again in 12 s",
      ])
    for width in 1...60 {
      let lines = wrapped(reason, width, most: 3)
      #expect(lines.count <= 3 && lines.allSatisfy { columns(of: $0) <= width }, "\(width): \(lines)")
    }
    #expect(wrapped("", 10, most: 3) == [""])
  }

  @Test func theEnvironmentDecidesOnColorsAndCharacters() {
    func style(_ variables: [String: String]) -> TerminalStyle { TerminalStyle { variables[$0] } }
    #expect(style([:]) == TerminalStyle(isUnicode: false, hasColor: true))
    #expect(style(["LANG": "de_DE.UTF-8"]) == TerminalStyle())
    #expect(style(["LANG": "C.utf8", "LC_ALL": "", "NO_COLOR": ""]) == TerminalStyle())
    #expect(style(["LANG": "de_DE.UTF-8", "LC_ALL": "C"]).isUnicode == false)
    #expect(style(["LANG": "C.UTF-8", "NO_COLOR": "1"]) == TerminalStyle(isUnicode: true, hasColor: false))
  }
}
