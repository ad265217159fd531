import BlobMedia
import Blobs
import Foundation
import Testing

/// What a decoder under an attacker's control can still do.
@Suite struct ConfinementTests {
  private func run(_ words: String...) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Photograph.program.description)
    process.arguments = words
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }

  /// The other tests render under the same filter.
  @Test func nothingCanBeOpenedStartedOrSent() throws {
    let (status, output) = try run("confinement")
    #expect(status == 0, "\(output)")
    let lines = output.split(separator: "\n").map { $0.split(separator: ":").map(String.init) }
    let wanted = [
      "read a file", "read a file of this process", "make a file", "list a folder", "open a socket",
      "open a local socket", "start a process", "signal another process", "trace a process", "make memory executable",
      "remove a file", "run a program",
    ]
    #expect(lines.map(\.first) == wanted)
    for line in lines { #expect(line.last == " Operation not permitted", "\(line)") }
  }

  @Test func itsVersionNamesTheLibrariesItHasLoaded() throws {
    let (status, output) = try run("--version")
    #expect(status == 0 && output.hasPrefix("fullbore-media 1, libvips 8."), "\(output)")
  }
}
