import Blobs
import TestSupport
import Testing

@testable import fullbore

/// The manual page and the completions, checked by the programs that read them where those are installed.
@Suite struct ManualTests {
  private static let commands = Fullbore.commands.map { $0.declaration }

  @Test func theManualHasEveryOptionOfEveryCommand() {
    let text = ManualPage(commands: Self.commands, version: "1.2.3").text
    for command in Self.commands {
      #expect(text.contains("\n.Ss \(command.name)\n"))
      for option in command.options { #expect(text.contains("Fl Fl \(option.name)"), "\(command.name)") }
    }
    #expect(text.contains(".It Fl j , Fl Fl jobs Ar \"\\&N\"\n"))
    // A line that begins with a dot is a macro of mdoc.
    let known = [
      ".Ar", ".Bl", ".Cm", ".Dd", ".Dt", ".El", ".Ev", ".Fl", ".It", ".Li", ".Nd", ".Nm", ".Op", ".Os", ".Pa", ".Pp",
      ".Sh", ".Ss", ".Xr", ".\\\"",
    ]
    for line in text.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
      #expect(known.contains(String(line.prefix(3))), "\(line)")
    }
  }

  @Test(arguments: Shell.allCases) func completionsHaveEveryOptionOfEveryCommand(_ shell: Shell) {
    let script = shell.script(Self.commands)
    for command in Self.commands {
      #expect(script.contains(command.name))
      for option in command.options {
        #expect(script.contains(shell == .fish ? "-l \(option.name)" : "--\(option.name)"), "\(command.name)")
        let choices = option.choices.map { shell == .zsh ? $0.replacing(":", with: "\\:") : $0 }
        if choices.isEmpty { continue }
        #expect(script.contains(choices.joined(separator: " ")), "\(command.name) \(option.name)")
      }
    }
  }
}
