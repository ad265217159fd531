import Foundation
import Testing

extension EndToEnd {
  /// Existing files are not sent again, whatever the journal knows, and a check says what it has compared.
  @Suite(.serialized) struct FreshJournalTests {
    let scratch = try! Scratch()

    @Test(arguments: ["", "tus+", "put+", "resumable+"])
    func aFreshJournalSendsNothingThatIsThere(_ uploadProtocol: String) async throws {
      let sizes = [0, 10, 70_000, 300_000, 9 << 20]
      for (number, size) in sizes.enumerated() { try scratch.file("card/\(number).jpg", size, seed: UInt64(number)) }
      let server = try await ServeProcess.start(in: scratch)
      func push(_ journal: String, _ options: String...) async throws -> Command {
        let words =
          ["push", "--journal", scratch.path(journal)] + options + [scratch.path("card/"), uploadProtocol + server.url]
        let push = try Command(Tool.fullbore, words, in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        return push
      }
      #expect(try await push("one").output.contains("5 files sent"))
      let numbers = try fileNumbers(server)
      let again = try await push("two")
      #expect(
        again.output.contains("0 files sent, ") && again.output.contains("; 5 already there"), "\(again.output)")
      #expect(try fileNumbers(server) == numbers, "nothing was stored anew")
      let check = try await push("two", "--check")
      #expect(check.output.contains("; 5 done before, compared by digest"), "\(check.output)")
      let verify = try await push("two", "--check", "--verify")
      #expect(verify.output.contains("; 5 done before, read back and compared"), "\(verify.output)")
      #expect(try await push("two").output.contains("; 5 done before, not asked"))
    }

    /// The inode numbers of the server's files, by name.
    private func fileNumbers(_ server: ServeProcess) throws -> [String: Int] {
      try server.folder.files().keys.reduce(into: [:]) { numbers, name in
        let facts = try FileManager.default.attributesOfItem(atPath: "\(server.folder.path)/\(name)")
        numbers[name] = facts[.systemFileNumber] as? Int
      }
    }

    /// If files are replaced anyway, a push has no other reason to ask for the capabilities of the server.
    @Test(arguments: ["", "put+", "resumable+"])
    func aCheckFindsOtherBytesWhereFilesAreReplaced(_ uploadProtocol: String) async throws {
      let file = try scratch.file("card/a.jpg", 5000, seed: 1)
      let server = try await ServeProcess.start(in: scratch)
      #expect(
        try await fullbore("push", "--overwrite", file, uploadProtocol + server.url, in: scratch).end == .exited(0))
      let (same, first) = try await fullbore(
        "push", "--overwrite", "--check", file, uploadProtocol + server.url, in: scratch)
      #expect(same == .exited(0) && first.output.contains("1 done before, compared by digest"), "\(first.output)")
      let other = try scratch.file("other", 5000, seed: 2)
      try Data(contentsOf: URL(fileURLWithPath: other)).write(
        to: URL(fileURLWithPath: "\(server.folder.path)/a.jpg"), options: [])
      let (end, check) = try await fullbore(
        "push", "--overwrite", "--check", file, uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0) && check.output.contains("1 file sent"), "\(check.output)\(check.errors)")
      #expect(FileManager.default.contentsEqual(atPath: file, andPath: "\(server.folder.path)/a.jpg"))
    }

    @Test func aCheckFindsOtherBytesOfTheSameLength() async throws {
      let file = try scratch.file("card/a.jpg", 5000, seed: 1)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", file, server.url, in: scratch).end == .exited(0))
      let other = try scratch.file("other", 5000, seed: 2)
      try Data(contentsOf: URL(fileURLWithPath: other)).write(
        to: URL(fileURLWithPath: "\(server.folder.path)/a.jpg"), options: [])
      let (end, check) = try await fullbore("push", "--check", file, server.url, in: scratch)
      #expect(end == .exited(1) && check.errors.contains("409"), "\(check.output)\(check.errors)")
      let (mended, push) = try await fullbore("push", "--check", "--overwrite", file, server.url, in: scratch)
      #expect(mended == .exited(0) && push.output.contains("1 file sent"), "\(push.output)\(push.errors)")
      #expect(FileManager.default.contentsEqual(atPath: file, andPath: "\(server.folder.path)/a.jpg"))
    }
  }
}
