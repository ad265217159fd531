import Blobs

struct AbortCommand: Command {
  static let declaration = CommandDeclaration(
    name: "abort", synopsis: "abort [ID... | --all]",
    summary: "delete unfinished uploads, here and on the server",
    options: [.flag("all", "every unfinished upload")] + ConnectionOptions.declared + [journalOption])

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore abort: not there yet\n")
    return .failed
  }
}
