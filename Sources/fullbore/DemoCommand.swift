import Blobs

struct DemoCommand: Command {
  static let declaration = CommandDeclaration(
    name: "demo", synopsis: "demo [FOLDER]",
    summary: "serve on a free port of this machine, push FOLDER (or a made gallery) to it, verify", options: [])

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore demo: not there yet\n")
    return .failed
  }
}
