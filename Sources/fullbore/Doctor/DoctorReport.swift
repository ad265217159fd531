import Platform
import Synchronization

/// Prints what the doctor finds, as text or as one JSON object a line, and counts the findings.
final class DoctorReport: Sendable {
  private struct State {
    var findings: [Finding] = []
    /// In the order in which they were first seen.
    var programs: [ServerProgram] = []
  }
  private let isJSON: Bool
  private let state = Mutex(State())

  init(isJSON: Bool) { self.isJSON = isJSON }

  var findings: [Finding] { state.withLock { $0.findings } }

  /// Notes the program that a response comes from.
  func noteProgram(_ program: ServerProgram?) {
    guard let program else { return }
    state.withLock { if !$0.programs.contains(program) { $0.programs.append(program) } }
  }

  /// Something is as it should be.
  func fine(_ check: String, _ text: String) { write("ok", check, text) }

  /// Something that is good to know, or was not examined.
  func note(_ check: String, _ text: String) { write("note", check, text) }

  /// Only the lines for the program that was seen first are printed, or for `by`, if that is known to be the cause.
  func found(_ finding: Finding, by program: ServerProgram? = nil) {
    var finding = finding
    let seen = program ?? state.withLock { $0.programs.first }
    if let seen, finding.mends.contains(where: { $0.program == seen }) {
      finding.mends.removeAll { $0.program != nil && $0.program != seen }
    }
    state.withLock { $0.findings.append(finding) }
    if isJSON {
      Console.output.write(Self.json(finding) + "\n")
    } else {
      Console.output.write(Self.text(finding))
    }
    Console.output.flush()
  }

  func end(_ status: ExitStatus, _ text: String) {
    if isJSON {
      var line = JSONLine("summary")
      line.add("findings", findings.count)
      line.add("text", text)
      line.add("exit", status.rawValue)
      Console.output.write(line.text + "\n")
    } else {
      Console.output.write("\(shown(text))\n")
    }
    Console.output.flush()
  }

  private func write(_ result: String, _ check: String, _ text: String) {
    if isJSON {
      var line = JSONLine("check")
      line.add("check", check)
      line.add("result", result)
      line.add("text", text)
      Console.output.write(line.text + "\n")
    } else {
      Console.output.write("\(Self.padded(result))\(check): \(shown(text))\n")
    }
    Console.output.flush()
  }

  private static func padded(_ word: String) -> String {
    word + String(repeating: " ", count: max(1, 7 - word.count))
  }

  private static func text(_ finding: Finding) -> String {
    let indent = String(repeating: " ", count: 7)
    var lines = ["\(padded("WRONG"))\(finding.kind.rawValue): \(shown(finding.what))"]
    if !finding.isMeasured { lines.append("\(indent)This is a guess.") }
    lines.append("\(indent)Consequence: \(shown(finding.consequence))")
    for mend in finding.mends {
      let name = mend.program?.rawValue
      if mend.isAdvice {
        lines.append("\(indent)To mend it\(name.map { ", \($0)" } ?? ""): \(shown(mend.lines.joined(separator: " ")))")
      } else {
        lines.append("\(indent)To mend it\(name.map { ", \($0)" } ?? ""), \(mend.place):")
        lines += mend.lines.map { "\(indent)    \(shown($0))" }
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func json(_ finding: Finding) -> String {
    var line = JSONLine("finding")
    line.add("kind", finding.kind.rawValue)
    line.add("what", finding.what)
    line.add("consequence", finding.consequence)
    line.add("measured", finding.isMeasured)
    line.add(
      "mend",
      objects: finding.mends.map { mend in
        var object = JSONLine()
        if let program = mend.program { object.add("program", program.rawValue) }
        if mend.isAdvice {
          object.add("advice", mend.lines.joined(separator: " "))
        } else {
          object.add("place", mend.place)
          object.add("lines", mend.lines.joined(separator: "\n"))
        }
        return object
      })
    return line.text
  }
}
