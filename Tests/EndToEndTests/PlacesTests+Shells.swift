import Foundation
import Testing

// The completions in the shells that they are made for.
extension EndToEnd.PlacesTests {
  /// Runs a script of the shell, in which `fullbore` is the program under test.
  private func output(of shell: Peer, _ options: [String], _ script: String) async throws -> String {
    let program = try #require(shell.path, shell.reason)
    try writeConfiguration("[places.nas]\nurl = \"http://nas/\"\n[places.cloud]\nurl = \"http://c/\"\n")
    let programs = try scratch.folder("programs")
    try FileManager.default.createSymbolicLink(atPath: "\(programs)/fullbore", withDestinationPath: Tool.fullbore)
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let command = try Command(
      program, options + [script], in: scratch,
      environment: [
        "XDG_CONFIG_HOME": scratch.path("config"), "HOME": scratch.path, "PATH": "\(programs):\(path)", "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
      ])
    #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
    return command.output
  }

  @Test(.needs(.fish)) func fishCompletesPlacesAndOptions() async throws {
    let script = """
      cd $HOME
      fullbore completions fish | source
      for line in 'fullbore push DCIM/ n' 'fullbore status cl' 'fullbore push --on-conf' 'fullbore places a' 'fullbore pus'
        complete -C $line | string replace -r '\\t.*' '' | string join ' '
      end
      true
      """
    let output = try await output(of: .fish, ["--no-config", "-c"], script)
    #expect(output == "nas:\ncloud:\n--on-conflict\nadd\npush\n")
  }

  /// Each line is typed into an interactive shell, and then the key that completes.
  @Test(.needs(.zsh)) func zshCompletesPlacesAndOptions() async throws {
    let script = #"""
      zmodload zsh/zpty
      zpty shell zsh -f -i
      zpty -w shell 'PROMPT=; autoload -Uz compinit && compinit -D -u; source <(fullbore completions zsh)'
      # The key ^X prints the line and empties it.
      zpty -w shell 'show() { print -r -- "DO""NE $BUFFER;"; BUFFER= }; zle -N show; bindkey "^X" show; echo REA""DY'
      zpty -r -m shell text '*READY*'
      for line in 'fullbore push DCIM/ n' 'fullbore status cl' 'fullbore push --on-conf' 'fullbore places a' 'fullbore pus'; do
        zpty -w -n shell "$line"$'\t\x18'
        zpty -r -m shell text '*DONE *;*'
        print -r -- "${${text##*DONE }%%;*}"
      done
      zpty -d shell
      """#
    let output = try await output(of: .zsh, ["-f", "-c"], script)
    let lines = output.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    #expect(
      lines.filter { $0.hasPrefix("fullbore ") } == [
        "fullbore push DCIM/ nas:", "fullbore status cloud:", "fullbore push --on-conflict", "fullbore places add",
        "fullbore push",
      ], "\(output)")
  }
}
