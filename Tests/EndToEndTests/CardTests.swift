import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// A card that is removed and inserted again: its files have other inode numbers, and the same or other bytes.
  ///
  /// A preloaded library makes the pushes see their files on FAT. Only this is simulated, so no test must mount a file
  /// system.
  @Suite(.serialized) struct CardTests {
    let scratch = try! Scratch()
    private static let size = 24 << 20

    @Test(arguments: [SIGKILL, SIGINT]) func sameBytesUnderOtherNumbersGoOn(_ signal: Int32) async throws {
      let half = try await push(endedBy: signal)
      try await plugInAgain(half.file)
      let sent = try await half.finish()
      #expect(
        sent < Self.size - half.held + 256 << 10, "\(sent) bytes sent, and \(half.held) of \(Self.size) were there")
    }

    /// The first byte, the last byte that the server has, and one in the middle.
    @Test(arguments: [0.0, 0.5, 1.0]) func oneOtherByteStartsOver(_ place: Double) async throws {
      let half = try await push(endedBy: SIGKILL)
      try await plugInAgain(half.file, changing: Int(Double(half.held - 1) * place))
      #expect(try await half.finish() >= Self.size)
      #expect(half.server.folder.unfinished() == 0, "the old upload is given up")
    }

    /// A hard link, a chmod, a move: the bytes are the same, and only ctime changes.
    @Test func otherRightsDoNotStartOver() async throws {
      let half = try await push(endedBy: SIGINT)
      #expect(chmod(half.file, 0o640) == 0)
      #expect(try await half.finish() < Self.size - half.held + 256 << 10)
    }

    /// A file on a local disk keeps its inode number. A file with another number must be treated as a different one.
    /// Its bytes are never checksummed by the process, so there is nothing to compare.
    @Test func onADiskOtherNumbersStartOver() async throws {
      let half = try await push(endedBy: SIGKILL, isCard: false)
      try await plugInAgain(half.file)
      #expect(try await half.finish() >= Self.size)
      #expect(half.server.folder.unfinished() == 0, "the old upload is given up")
    }

    @Test func onADiskTheSameFileGoesOn() async throws {
      let half = try await push(endedBy: SIGKILL, isCard: false)
      #expect(try await half.finish() < Self.size - half.held + 256 << 10)
    }

    @Test func severalRunsAddUp() async throws {
      var half = try await push(endedBy: SIGKILL)
      half = try await half.pushOn(until: half.held + 4 << 20, endedBy: SIGKILL)
      half = try await half.pushOn(until: half.held + 4 << 20, endedBy: SIGINT)
      try await plugInAgain(half.file)
      #expect(try await half.finish() < Self.size - half.held + 256 << 10)
    }

    /// If the numbers differ, the bytes sent before are read and compared. If they differ, the file is from another
    /// card.
    @Test(arguments: [FaultColumn.put, .tus, .resumable, .dav, .s3], [100_000, 20 << 20])
    func aFileThatIsDoneIsComparedUnderOtherNumbers(_ column: FaultColumn, _ size: Int) async throws {
      let file = try scratch.file("card/photo.jpg", size)
      let server = try await FaultServer.start(for: column, isFull: false, in: scratch)
      let first = try await push(file, to: server, column)
      #expect(first.end == .exited(0), "\(first.output)\(first.errors)")
      for _ in 0..<2 {
        try await plugInAgain(file)
        let again = try await push(file, to: server, column)
        #expect(again.end == .exited(0) && again.output.contains("1 done before"), "\(again.output)\(again.errors)")
      }
      try await plugInAgain(file, changing: size - 1)
      let other = try await push(file, to: server, column)
      #expect(other.end == .exited(1) && !other.output.contains("done before"), "\(other.output)\(other.errors)")
      let whole = try await push(file, to: server, column, ["--overwrite"])
      #expect(whole.end == .exited(0), "\(whole.output)\(whole.errors)")
      #expect(server.contents("photo.jpg") == FileManager.default.contents(atPath: file))
    }

    /// No checksum is stored for a file on a disk. The file is sent again, and the server says whether it has these
    /// bytes.
    @Test(arguments: [FaultColumn.tus, .put])
    func onADiskAFileThatIsDoneIsSentAgainUnderOtherNumbers(_ column: FaultColumn) async throws {
      let file = try scratch.file("card/photo.jpg", 100_000)
      let server = try await FaultServer.start(for: column, isFull: false, in: scratch)
      #expect(try await push(file, to: server, column, isCard: false).end == .exited(0))
      try await plugInAgain(file)
      for isKnown in [false, true] {
        let again = try await push(file, to: server, column, isCard: false)
        #expect(again.end == .exited(0), "\(again.output)\(again.errors)")
        #expect(again.output.contains("1 done before") == isKnown, "\(again.output)")
      }
      try await plugInAgain(file, changing: 5)
      let other = try await push(file, to: server, column, isCard: false)
      #expect(other.end == .exited(1), "\(other.output)\(other.errors)")
    }

    private func push(
      _ file: String, to server: FaultServer, _ column: FaultColumn, _ options: [String] = [], isCard: Bool = true
    ) async throws -> Command {
      var environment = isCard ? try Shim.environment(.onlyCards, in: scratch) : [:]
      environment.merge(column.environment) { $1 }
      let push = try Command(
        Tool.fullbore, ["push", "--part-size", "5M"] + options + [file] + column.destination(server.url), in: scratch,
        environment: environment)
      try await push.wait()
      return push
    }

    /// An upload that was interrupted at some byte, and a proxy that counts bytes.
    private struct Half {
      let scratch: Scratch
      let server: ServeProcess
      let proxy: ChaosProxy
      let file: String
      /// The environment of the pushes.
      let environment: [String: String]
      var held = 0

      /// Resumes until the server has this number of bytes.
      func pushOn(until bytes: Int, endedBy signal: Int32) async throws -> Half {
        let push = try Command.fullbore(
          "push", "--bwlimit", "8M", "--header", host, file, url, in: scratch, environment: environment)
        try await until("\(bytes) bytes have arrived") {
          if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
          return server.folder.unfinished() >= bytes ? true : nil
        }
        push.kill(signal)
        let end = try await push.wait()
        #expect(end == (signal == SIGINT ? .exited(130) : .killed(by: signal)), "\(push.output)\(push.errors)")
        var half = self
        half.held = try await server.folder.settled()
        return half
      }

      /// Resumes until the end. Returns the number of bytes sent over the connection for this.
      func finish() async throws -> Int {
        let before = proxy.counters.bytesUp
        let push = try Command.fullbore(
          "push", "--header", host, file, url, in: scratch, environment: environment)
        #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
        let gallery = Folder(URL(fileURLWithPath: file).deletingLastPathComponent().path)
        gallery.expectSame(as: server.folder)
        return Int(proxy.counters.bytesUp - before)
      }

      /// The server accepts requests for its own host name only.
      private var host: String { "Host: 127.0.0.1:\(server.port)" }
      private var url: String { "tus+http://127.0.0.1:\(proxy.port)/" }
    }

    private func push(endedBy signal: Int32, isCard: Bool = true) async throws -> Half {
      let file = try scratch.file("card/video.mov", Self.size)
      let server = try await ServeProcess.start(in: scratch)
      let proxy = ChaosProxy(to: server.port)
      let environment = isCard ? try Shim.environment(.onlyCards, in: scratch) : [:]
      return try await Half(scratch: scratch, server: server, proxy: proxy, file: file, environment: environment)
        .pushOn(until: 4 << 20, endedBy: signal)
    }

    /// Replaces the file by one with the same name, size and time, and another inode.
    private func plugInAgain(_ file: String, changing byte: Int? = nil) async throws {
      let copy = file + ".copy"
      #expect(try await Command("cp", ["-p", file, copy], in: scratch).wait() == .exited(0))
      if let byte {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: copy))
        try handle.seek(toOffset: UInt64(byte))
        let old = try #require(try handle.read(upToCount: 1)?.first)
        try handle.seek(toOffset: UInt64(byte))
        try handle.write(contentsOf: Data([old ^ 1]))
        try handle.close()
        #expect(try await Command("touch", ["-r", file, copy], in: scratch).wait() == .exited(0))
      }
      #expect(rename(copy, file) == 0)
    }
  }
}

extension Folder {
  /// Returns the number of bytes in unfinished uploads, once it no longer grows.
  func settled() async throws -> Int {
    var (bytes, since) = (-1, ContinuousClock.now)
    return try await until("the server has written what it got") {
      let now = unfinished()
      if now != bytes { (bytes, since) = (now, .now) }
      return ContinuousClock.now - since > .milliseconds(200) ? bytes : nil
    }
  }
}
