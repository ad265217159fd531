import Blobs

struct ChecksumCommand: Command {
  static let declaration = CommandDeclaration(
    name: "checksum", synopsis: "checksum FILE...",
    summary: "digests of files, streamed", options: [])

  init(_ arguments: Arguments) throws(UsageError) {}

  func run() async -> ExitStatus {
    Console.error.write("fullbore checksum: not there yet\n")
    return .failed
  }
}
