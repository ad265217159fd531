import Blobs

struct StatusCommand: Command {
  static let declaration = CommandDeclaration(
    name: "status", synopsis: "status",
    summary: "what the journal knows: done, under way, failed (with the reason)", options: [journalOption])

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore status: not there yet\n")
    return .failed
  }
}
