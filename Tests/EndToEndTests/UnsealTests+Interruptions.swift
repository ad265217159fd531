import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd.UnsealTests {
  private static let chunk = 65_536
  /// Bytes that are synced at once.
  private static let synced = 32 << 20

  /// Sends a sealed film, and returns the server, the path of the film, and the arguments that unseal it.
  private func sealedFilm(_ size: Int, _ options: String...) async throws -> (
    server: ServeProcess, film: String, arguments: [String]
  ) {
    let key = try await makeKey()
    let film = try scratch.file("card/film.mov", size)
    let server = try await ServeProcess.start(in: scratch, options: options)
    #expect(try await run(["push", "--seal", key.recipient, film, server.url]).end == .exited(0))
    return (server, film, ["unseal", server.url, restored, "-i", key.file, "--json"])
  }

  /// Interrupts a command once it has written more than `wanted` bytes.
  private func interrupt(_ arguments: [String], at wanted: Int, by signal: Int32) async throws -> Command {
    let command = try Command(Tool.fullbore, arguments, in: scratch)
    try await until("\(wanted) bytes are written") {
      Folder(restored).unsealing() > wanted || command.end != nil ? true : nil
    }
    command.kill(signal)
    _ = try await command.wait()
    #expect(!FileManager.default.fileExists(atPath: restored + "/film.mov"), "\(command.output)\(command.errors)")
    return command
  }

  private func read(_ command: Command) throws -> Int {
    try #require(try events(command).last?["bytes"] as? Int, "\(command.output)\(command.errors)")
  }

  /// Bytes that were on the disk are not read again. The others are not trusted: after a power cut the file may have its
  /// length without them.
  @Test func aRunThatWasKilledGoesOnFromTheSyncedBytes() async throws {
    let size = 128 << 20
    let (server, film, arguments) = try await sealedFilm(size)
    let killed = try await interrupt(arguments, at: Self.synced + Int.random(in: 4 << 20..<12 << 20), by: SIGKILL)
    #expect(try await killed.wait() == .killed(by: SIGKILL))
    let folder = restored + "/.fullbore-unseal"
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasSuffix(".part") })
    let partial = try #require(FileHandle(forUpdatingAtPath: "\(folder)/\(name)"))
    let written = Int(try partial.seekToEnd())
    let kept = written / Self.synced * Self.synced - Self.chunk
    try partial.seek(toOffset: UInt64(kept + Self.chunk))
    try partial.write(contentsOf: Data(count: written - kept - Self.chunk))
    try partial.close()
    let (end, last) = try await run(arguments)
    #expect(end == .exited(0), "\(last.output)\(last.errors)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
    // A sync may have been under way when it was killed.
    let bytes = try read(last)
    #expect([size - kept, size - kept + Self.synced].contains(bytes), "\(bytes) of \(size), \(kept) kept")
    #expect(!FileManager.default.fileExists(atPath: folder))
    _ = server
  }

  /// Ctrl-C: what was written is synced, and not read again.
  @Test func anInterruptedRunGoesOnWhereItWas() async throws {
    let size = 96 << 20
    let (server, film, arguments) = try await sealedFilm(size)
    let first = try await interrupt(arguments, at: Int.random(in: 1 << 20..<8 << 20), by: SIGINT)
    #expect(try await first.wait() == .exited(130), "\(first.output)\(first.errors)")
    #expect(try events(first).last?["interrupted"] as? Bool == true)
    let written = Folder(restored).unsealing()
    #expect(written > 1 << 20)
    let (end, last) = try await run(arguments)
    #expect(end == .exited(0), "\(last.output)\(last.errors)")
    let bytes = try read(last)
    #expect(bytes <= size - written + Self.chunk, "\(bytes) of \(size), \(written) were there")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
    _ = server
  }

  /// A server without ranges, or with a file that is younger than a minute, sends no rest of a file, only the whole.
  @Test func aFileWithoutAVersionIsReadAgainFromItsFirstByte() async throws {
    let (server, film, arguments) = try await sealedFilm(5_000_000)
    let sealed = try #require(FileManager.default.contents(atPath: server.folder.path + "/film.mov.age"))
    let peer = HTTPPeer { request in
      if request.path.hasSuffix("/") { return .init(404) }
      return ["GET", "HEAD"].contains(request.method) ? .init(200, [:], Array(sealed)) : .init(405)
    }
    defer { peer.stop() }
    let proxy = ChaosProxy(
      to: peer.port, ChaosProxy.Schedule([.none, .cutDown(after: 3_000_000), .cutDown(after: 4_000_000)]))
    var through = arguments
    through[1] = "http://127.0.0.1:\(proxy.port)/film.mov.age"
    let (end, command) = try await run(through + ["--retries", "5"])
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
    #expect(proxy.counters.faults >= 1)
  }

  /// Connections that are cut, and a server that is away for a moment, are made up for in one run.
  @Test func aServerThatReturnsIsWaitedFor() async throws {
    let size = 64 << 20
    let (server, film, arguments) = try await sealedFilm(size, "--host", "127.0.0.1")
    let proxy = ChaosProxy(
      to: server.port,
      ChaosProxy.Schedule([.none, .cutDown(after: 3_000_000), .cutDown(after: 100), .cutDown(after: 9_000_000)]))
    var through = arguments
    through[1] = "http://127.0.0.1:\(proxy.port)/"
    let command = try Command(Tool.fullbore, through, in: scratch)
    try await until("something is written") {
      Folder(restored).unsealing() > 8 << 20 || command.end != nil ? true : nil
    }
    server.command.kill(SIGKILL)
    _ = try await server.command.wait()
    func said(_ words: String) -> Bool { command.output.contains("127.0.0.1:\(proxy.port) \(words)") }
    try await until("it says so: \(command.output)") {
      said("does not answer since") || command.end != nil ? true : nil
    }
    #expect(said("does not answer since") && command.output.contains(", trying again"), "\(command.output)")
    let again = try await ServeProcess.start(in: scratch, port: server.port, "--host", "127.0.0.1")
    #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
    #expect(said("answers again, after"), "\(command.output)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
    #expect(proxy.counters.faults >= 2)
    _ = again
  }

  #if os(Linux)
    @Test func aFullDiskEndsTheRunAndALaterOneGoesOn() async throws {
      let size = 8 << 20
      let (server, film, arguments) = try await sealedFilm(size)
      let (end, full) = try await run(arguments, try Shim.environment(.fullDisk(at: 3 << 20), in: scratch))
      #expect(end == .exited(1), "\(full.output)\(full.errors)")
      #expect(full.output.contains("film.mov: No space left on device at byte "), "\(full.output)")
      #expect(full.output.contains("are free there") && full.output.contains("\"event\":\"error\""), "\(full.output)")
      #expect(Folder(restored).restored().isEmpty)
      let (again, last) = try await run(arguments)
      #expect(again == .exited(0), "\(last.output)\(last.errors)")
      let bytes = try read(last)
      #expect(bytes <= size - (2 << 20), "\(bytes)")
      #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
      _ = server
    }
  #endif

  @Test func memoryStaysWhileALargeFileIsUnsealed() async throws {
    let (server, film, arguments) = try await sealedFilm(256 << 20)
    let (end, command) = try await run(arguments)
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    #expect(FileManager.default.contentsEqual(atPath: restored + "/film.mov", andPath: film))
    #expect(command.peakMemory > 1 << 20 && command.peakMemory < 40 << 20, "\(command.peakMemory >> 20) MiB")
    _ = server
  }
}
