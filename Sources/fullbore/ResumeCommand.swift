import Blobs

struct ResumeCommand: Command {
  static let declaration = CommandDeclaration(
    name: "resume", synopsis: "resume",
    summary: "finish what earlier pushes left unfinished",
    options: ConnectionOptions.declared + [journalOption] + OutputOptions.declared)

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore resume: not there yet\n")
    return .failed
  }
}
