/// Prints the manual page.
struct ManualCommand: Command {
  static let declaration = CommandDeclaration(
    name: "manual", synopsis: "manual", summary: "print the manual page: every command with all its options",
    options: [],
    examples: [
      .init("manual > ~/.local/share/man/man1/fullbore.1", "then 'man fullbore' shows it; the folder must be there")
    ])

  init(_ arguments: Arguments) throws(UsageError) {
    if let operand = arguments.operands.first { throw UsageError("'\(shown(operand))': manual takes no operand") }
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    let page = ManualPage(commands: Fullbore.commands.map { $0.declaration }, version: Fullbore.version)
    Console.output.write(page.text)
    return .ok
  }
}

/// Prints the completions for a shell.
struct CompletionsCommand: Command {
  static let declaration = CommandDeclaration(
    name: "completions", synopsis: "completions bash|zsh|fish",
    summary: "print a script with which a shell completes commands, options and files",
    options: [],
    examples: [
      .init(
        "completions bash > ~/.local/share/bash-completion/completions/fullbore",
        "for bash, from its next start on; the folder must be there: mkdir -p makes it"),
      .init("completions zsh > ~/.zfunc/_fullbore", "for zsh, where fpath has ~/.zfunc, which must be there"),
      .init("completions fish > ~/.config/fish/completions/fullbore.fish", "for fish; the folder must be there"),
    ], operands: Shell.allCases.map(\.rawValue))

  let shell: Shell

  init(_ arguments: Arguments) throws(UsageError) {
    let known = Shell.allCases.map(\.rawValue).joined(separator: ", ")
    guard arguments.operands.count == 1 else { throw UsageError("for which shell? \(known)") }
    guard let shell = Shell(rawValue: arguments.operands[0].description) else {
      throw UsageError("'\(shown(arguments.operands[0]))': wanted one of \(known)")
    }
    self.shell = shell
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    Console.output.write(shell.script(Fullbore.commands.map { $0.declaration }))
    return .ok
  }
}
