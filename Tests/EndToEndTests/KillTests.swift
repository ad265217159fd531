import Foundation
import Testing

extension EndToEnd {
  /// The client or the server is killed at random bytes, repeatedly, until everything has arrived.
  @Suite(.serialized) struct KillTests {
    /// `FULLBORE_KILLS` sets the number of kills, and `FULLBORE_SEED` repeats a run.
    @Test func killsAtRandomBytesLoseNothing() async throws {
      let kills = Tool.number("FULLBORE_KILLS", default: 50)
      let seed = Tool.number("FULLBORE_SEED", default: Int.random(in: 0...999_999))
      print("FULLBORE_SEED=\(seed) FULLBORE_KILLS=\(kills)")
      var battle = try await Battle(seed: UInt64(seed))
      while battle.kills < kills { try await battle.round(kills: kills) }
      print("killed the client \(battle.clientKills) times, the server \(battle.serverKills) times")
      #expect(battle.clientKills > kills / 10 && battle.serverKills > kills / 10)
      try await battle.expectNothingLeft()
    }
  }
}

/// A client and a server that are killed.
private struct Battle {
  private let scratch = try! Scratch()
  private var random: Seeded
  private var server: ServeProcess
  private var galleries = 0
  private(set) var clientKills = 0
  private(set) var serverKills = 0
  private var resumableKills = 0
  /// Files that were published and compared; a published file never changes.
  private var verified: Set<String> = []

  /// The open files of a server that has just started.
  private let atFirst: [String]

  init(seed: UInt64) async throws {
    random = Seeded(seed)
    server = try await ServeProcess.start(in: scratch)
    atFirst = server.command.openFiles
  }

  var kills: Int { clientKills + serverKills }

  /// Pushes a new gallery with as many kills as remain, then compares it.
  mutating func round(kills wanted: Int) async throws {
    galleries += 1
    verified = []
    let name = "gallery-\(galleries)"
    var total = 0
    for (count, size) in [(1, 96 << 20), (12, 3 << 20), (60, 100_000)] {
      for number in 0..<count {
        let size = size + Int.random(in: -1000...1000, using: &random)
        try scratch.file("\(name)/\(size / 1_000_000)/IMG_\(number).jpg", size, seed: UInt64(number))
        total += size
      }
    }
    let source = Folder(scratch.path(name))
    let arrived = Folder("\(server.folder.path)/\(name)")
    // The kills are so far apart that an upload is still active at the last one. Half of them are for the second
    // protocol.
    let share = galleries == 1 ? wanted / 2 : wanted - kills
    let step = max(1, total / min(share + 2, 60))
    let before = server.folder.received()
    var next = before
    var push = try start(name, attempt: 0)

    while true {
      next = max(next, server.folder.received()) + Int.random(in: 0...(2 * step), using: &random)
      let hasEnded = try await until("the push goes on: \(server.folder.received() - before) of \(total)") { [server] in
        push.end != nil ? true : server.folder.received() >= next ? false : nil
      }
      if hasEnded { break }
      if Bool.random(using: &random) {
        push.kill(SIGKILL)
        clientKills += 1
        if isResumable { resumableKills += 1 }
        try await push.wait()
        push = try start(name, attempt: kills)
      } else {
        server.command.kill(SIGKILL)
        serverKills += 1
        try await server.command.wait()
        server = try await server.startAgain(in: scratch)
      }
      expectOnlyWholeFiles(in: arrived, of: source)
      next = server.folder.received()
    }

    #expect(push.end == .exited(0), "\(push.output)\(push.errors)")
    source.expectSame(as: arrived)
    try FileManager.default.removeItem(atPath: source.path)
  }

  /// Expects that the last push leaves no descriptor, no temporary file, and nothing unfinished in the journal. An
  /// upload whose client was killed before it could record it, and its data, remain at the server until they expire.
  func expectNothingLeft() async throws {
    let (_, status) = try await fullbore("status", "--json", in: scratch)
    #expect(!status.output.contains(#""event":"file""#), "\(status.output)")
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { name in
      !["output-", "errors-"].contains { name.hasPrefix($0) }
    }
    #expect(
      Set(names).isSubset(of: ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "received"]), "\(names)")
    do {
      try await until("the server has given back its descriptors") { [server, atFirst] in
        server.command.openFiles.count <= atFirst.count ? true : nil
      }
    } catch {
      throw Command.Failure("\(error): \(server.command.openFiles), at first \(atFirst)")
    }
    let uploads = try await until("bytes that belong to no upload are gone") { [server] in
      let aside = try FileManager.default.contentsOfDirectory(atPath: server.folder.path + "/.fullbore")
      let uploads = Set(aside.filter { $0.hasSuffix(".info") }.map { $0.dropLast(5) })
      return aside.filter { $0.hasSuffix(".data") }.allSatisfy { uploads.contains($0.dropLast(5)) } ? uploads : nil
    }
    // The URL of a resumable upload is sent before its bytes. The server keeps the received bytes of all files that
    // were active at once.
    let most = max(2, clientKills / 20) + 64 * resumableKills
    #expect(uploads.count <= most, "\(uploads.count) uploads are nobody's after \(clientKills) kills")
  }

  private var isResumable: Bool { galleries.isMultiple(of: 2) }

  /// Galleries alternate between the protocols that can resume.
  private func start(_ name: String, attempt: Int) throws -> Command {
    let uploadProtocol = isResumable ? "resumable+" : "tus+"
    return try Command.fullbore(
      "push", "--bwlimit", "48M", scratch.path(name), uploadProtocol + server.url, in: scratch)
  }

  /// No file is published early or in part: every published file has all its bytes.
  private mutating func expectOnlyWholeFiles(in arrived: Folder, of source: Folder) {
    for name in arrived.files().keys where !verified.contains(name) {
      #expect(source.hasSameBytes(name, as: arrived), "\(name) was published with other bytes")
      verified.insert(name)
    }
  }
}
