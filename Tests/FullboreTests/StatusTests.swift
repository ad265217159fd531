import BlobUpload
import Blobs
import Testing

@testable import fullbore

@Suite struct StatusTests {
  let scratch = Scratch()

  /// A journal with one file done, one failed and one under way.
  func status(showsAll: Bool) async throws -> JournalStatus {
    let journal = try await Journal(at: scratch.path.appending("journal.sqlite"))
    let id = try await journal.destinationID(JournalDestination(endpoint: "http://host/in/", protocolName: "tus"))
    let names: [BytePath] = ["done.jpg", BytePath([0x66, 0xFF]), "under.mov"]
    let claims = try await journal.claim(
      names.map { name in
        JournalIntent(
          source: BytePath("/src").appending(name), target: "http://host/in/\(name)", path: name, length: 1024,
          validator: Validator(version: "1"))
      }, destination: id)
    let ids = claims.compactMap { if case .fresh(let id) = $0 { id } else { nil } }
    #expect(ids.count == 3)
    journal.done(ids[0], UploadResult())
    journal.failed(ids[1], "409: other bytes\nare there")
    try await journal.flush()
    let status = JournalStatus(
      sums: try await journal.summary(), unfinished: try await journal.unfinished(),
      done: showsAll ? try await journal.entries(.done, limit: -1) : [], showsAll: showsAll)
    await journal.close()
    return status
  }

  @Test func peopleSeeSumsAndTheReasonsOfFailures() async throws {
    let status = try await status(showsAll: false)
    let text = status.text
    #expect(text.hasPrefix("http://host/in/ (tus)\n"))
    #expect(text.contains("  done: 1 file, 1.00 KiB\n"))
    #expect(text.contains("f\u{FFFD}  0 B of 1.00 KiB: 409: other bytes\\nare there\n"))
    #expect(text.contains("\nUnder way:\n"))
    #expect(text.contains("under.mov  0 B of 1.00 KiB"))
    #expect(!text.contains("done.jpg"))
    #expect(status.json.split(separator: "\n").count == 5)
  }

  @Test func programsSeeNamesAsBytes() async throws {
    let json = try await status(showsAll: true).json
    #expect(json.contains(#""state":"failed","path":"f�","path_bytes":"66ff""#))
    #expect(
      json.contains(#""event":"destination","endpoint":"http://host/in/","protocol":"tus","state":"done","files":1"#))
    #expect(json.contains(#""state":"done","path":"done.jpg""#))
  }

  @Test func askingMakesNoJournal() async throws {
    let path = scratch.path.appending("none.sqlite")
    #expect(await Fullbore.run(["status", "--journal", path]) == .ok)
    #expect(await Fullbore.run(["abort", "--all", "--journal", path]) == .ok)
    #expect(await Fullbore.run(["abort", "7", "--journal", path]) == .failed)
    #expect(await Fullbore.run(["abort"]) == .usage)
    #expect(throws: DemoError.self) { try fileStatus(path) }
  }
}
