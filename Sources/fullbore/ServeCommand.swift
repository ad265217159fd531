import Blobs

struct ServeCommand: Command {
  static let declaration = CommandDeclaration(
    name: "serve", synopsis: "serve FOLDER",
    summary: "receive uploads into FOLDER", options: [])

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore serve: not there yet\n")
    return .failed
  }
}
