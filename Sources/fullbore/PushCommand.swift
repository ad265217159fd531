import Blobs

struct PushCommand: Command {
  static let declaration = CommandDeclaration(
    name: "push", synopsis: "push SOURCE... DESTINATION",
    summary: "upload files and folders; resumes by itself when run again",
    options: PushOptions.declared, notes: PushOptions.notes)

  let options: PushOptions

  init(_ arguments: Arguments) throws(UsageError) { options = try PushOptions(arguments) }

  func run() async -> ExitStatus {
    Console.error.write("fullbore push: not there yet\n")
    return .failed
  }
}
