import BlobSQLite
import BlobTesting
import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// `fullbore push sqlite:…`: the BLOBs of a database.
  @Suite(.serialized) struct DatabaseTests {
    let scratch = try! Scratch()

    /// Rows with a name, a version and a BLOB of a pattern with the row's number as its seed.
    private func makeDatabase(_ lengths: [Int]) throws -> Database {
      let database = try Database(BytePath(scratch.path("album.db")))
      try database.execute("CREATE TABLE photo(id INTEGER PRIMARY KEY, file TEXT, version INTEGER, data BLOB)")
      for (index, length) in lengths.enumerated() {
        let insert = try database.statement("INSERT INTO photo VALUES(?1, 'roll/IMG_' || ?1 || '.jpg', 1, ?2)")
        try insert.bind(1, Int64(index + 1))
        try insert.bind(2, bytes(length, UInt64(index + 1)))
        try insert.run()
      }
      return database
    }

    private func bytes(_ length: Int, _ seed: UInt64) -> [UInt8] {
      PatternSource(length: Int64(length), seed: seed).bytes(count: length)
    }

    private var source: String {
      "sqlite:\(scratch.path("album.db"))?table=photo&column=data&name=file&version=version"
    }

    @Test(arguments: ["tus+", "resumable+", "put+", ""])
    func everyRowArrivesUnderItsNameAndOnlyOnce(_ dialect: String) async throws {
      let lengths = [0, 1, 100_000, 9 << 20]
      let database = try makeDatabase(lengths)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(Tool.fullbore, ["push", source, dialect + server.url], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      for (index, length) in lengths.enumerated() {
        let arrived = try Data(contentsOf: URL(fileURLWithPath: server.folder.path + "/roll/IMG_\(index + 1).jpg"))
        #expect(Array(arrived) == bytes(length, UInt64(index + 1)))
      }
      let again = try Command(Tool.fullbore, ["push", source, dialect + server.url], in: scratch)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      #expect(again.output.contains("4 done before"), "\(again.output)")

      // One row has another version now; nobody may put it in the place of the old one unasked.
      try database.execute("UPDATE photo SET data = x'0102', version = 2 WHERE id = 3")
      let changed = try Command(Tool.fullbore, ["push", source, dialect + server.url], in: scratch)
      #expect(try await changed.wait() == .exited(1), "\(changed.output)\(changed.errors)")
      #expect(changed.errors.contains("IMG_3.jpg"))
      let replaced = try Command(Tool.fullbore, ["push", "--overwrite", source, dialect + server.url], in: scratch)
      #expect(try await replaced.wait() == .exited(0), "\(replaced.output)\(replaced.errors)")
      let arrived = try Data(contentsOf: URL(fileURLWithPath: server.folder.path + "/roll/IMG_3.jpg"))
      #expect(Array(arrived) == [1, 2])
    }

    @Test func aKilledPushOfARowGoesOnWhereItWas() async throws {
      let size = 24 << 20
      _ = try makeDatabase([size])
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        Tool.fullbore, ["push", "--bwlimit", "24M", "--part-size", "1M", source, "tus+" + server.url], in: scratch)
      try await until("8 MiB have arrived: \(push.errors)") { server.folder.unfinished() >= 8 << 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      let resume = try Command(Tool.fullbore, ["resume"], in: scratch)
      #expect(try await resume.wait() == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(resume.output.contains("resumed at byte"), "\(resume.output)")
      let arrived = try Data(contentsOf: URL(fileURLWithPath: server.folder.path + "/roll/IMG_1.jpg"))
      #expect(Array(arrived) == bytes(size, 1))
    }

    @Test(arguments: [
      ("album.db?table=nowhere&column=data", "no such table", 1),
      ("none.db?table=photo&column=data", "unable to open", 1),
      ("album.db?table=photo", "wanted is", 2), ("album.db?table=photo&column=file&row=1", "no BLOB", 1),
    ])
    func whatIsWrongIsSaid(_ source: String, _ words: String, _ status: Int32) async throws {
      _ = try makeDatabase([10])
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(Tool.fullbore, ["push", "sqlite:" + scratch.path(source), server.url], in: scratch)
      #expect(try await push.wait() == .exited(status), "\(push.output)\(push.errors)")
      #expect(push.errors.contains(words), "\(push.errors)")
    }
  }
}
