import BlobTesting
import Blobs
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Ctrl-C ends a push at once, whatever it waits for.
  @Suite(.serialized) struct StopTests {
    private let scratch = try! Scratch()
    private static let limit = Duration.milliseconds(200)

    /// Measures the fastest of six runs, so that a busy machine is not taken for a slow program. `start` returns once
    /// the push has reached the point where it is stopped.
    private func measure(_ start: () async throws -> Command) async throws {
      var quickest: Duration = .seconds(3600)
      for _ in 0..<6 {
        let push = try await start()
        try #require(push.end == nil, "\(push.output)\(push.errors)")
        let clock = ContinuousClock.now
        push.kill(SIGINT)
        #expect(try await push.wait(.seconds(20)) == .exited(130))
        quickest = min(quickest, clock.duration(to: .now))
        if quickest < Self.limit { break }
      }
      #expect(quickest < Self.limit)
    }

    private func push(
      _ size: Int, to url: String, _ options: String..., environment: [String: String] = [:]
    ) throws -> Command {
      let file = try scratch.file("file-\(size)", size)
      // Otherwise the thread sanitizer sleeps for a second at the end of every program.
      let sanitizer = ProcessInfo.processInfo.environment["TSAN_OPTIONS"].map {
        ["TSAN_OPTIONS": "\($0):atexit_sleep_ms=0"]
      }
      return try Command(
        Tool.fullbore, ["push", "--overwrite", "--journal", scratch.newPath("journal")] + options + [file, url],
        in: scratch,
        environment: environment.merging(sanitizer ?? [:]) { own, _ in own })
    }

    @Test func whileANameIsLookedUp() async throws {
      try await measure {
        let mark = scratch.newPath("mark")
        let push = try push(
          1000, to: "http://media.example/",
          environment: try Shim.environment(.silentResolver(mark: mark), in: scratch))
        try await until("a name is looked up") { FileManager.default.fileExists(atPath: mark) ? true : nil }
        return push
      }
    }

    #if os(Linux)
      @Test func whileAnotherProgramHoldsALeaseOnAnEmptyFile() async throws {
        let file = try scratch.file("empty", 0)
        let lease = try #require(FileLease(BytePath(file)))
        try await measure {
          lease.giveUp()
          try #require(lease.take())
          let push = try Command(
            Tool.fullbore,
            ["push", "--overwrite", "--journal", scratch.newPath("journal"), file, "put+http://127.0.0.1:1/"],
            in: scratch)
          try await until("the file is opened") {
            if push.end != nil { throw Command.Failure("\(push.output)\(push.errors)") }
            return lease.isWanted ? true : nil
          }
          return push
        }
      }
    #endif

    @Test func whileConnecting() async throws {
      let (listener, port) = Loopback.listen(backlog: 0)
      // Fills the backlog; the next connection gets no response.
      let filler = try #require(Loopback.connect(port: port))
      defer { for socket in [listener, filler] { Loopback.close(socket) } }
      let line = " 0100007F:" + String(format: "%04X", port) + " 02 "
      try await measure {
        let push = try push(1000, to: "http://127.0.0.1:\(port)/")
        try await until("it connects") {
          // Foundation would read only the first page.
          let table = try FileHandle(forReadingAtPath: "/proc/net/tcp")?.readToEnd() ?? Data()
          return String(decoding: table, as: UTF8.self).contains(line) ? true : nil
        }
        return push
      }
    }

    @Test func duringTheTLSHandshake() async throws {
      try await stops("https", [.read(5), .hold]) { $0.steps.last == 1 }
    }

    /// Simulates a network drive whose server is gone, with a file system that never responds and is mounted for this
    /// program only.
    @Test(
      .enabled(if: canMountSilently, "it takes root to mount a file system that answers nothing"),
      arguments: ["push", "watch"])
    func whileAFolderIsStuck(command: String) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let folder = try scratch.folder("card/stuck")
      try await measure {
        let words = [command, "--journal", scratch.newPath("journal"), scratch.path("card"), server.url]
        let push = try Command(
          "unshare", ["-m", "sh", "-c", Self.mounting, "sh", folder, Tool.fullbore] + words, in: scratch)
        try await until("it waits for the folder") {
          let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(push.pid)/task")
          let waits = threads.contains {
            let place = try? FileHandle(forReadingAtPath: "/proc/\(push.pid)/task/\($0)/wchan")?.readToEnd()
            return place.map { String(decoding: $0, as: UTF8.self).hasPrefix("fuse_") } == true
          }
          return waits ? true : nil
        }
        return push
      }
    }

    /// No process reads the requests to this file system. It disappears with the last process that has its device open.
    private static let mounting = """
      exec 9<>/dev/fuse
      mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 none "$1" && shift && exec "$@"
      """

    private static let canMountSilently: Bool = {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = ["unshare", "-m", "sh", "-c", mounting, "sh", "/mnt", "true"]
      (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
      guard (try? process.run()) != nil else { return false }
      process.waitUntilExit()
      return process.terminationStatus == 0
    }()

    @Test func whileTheServerIsAskedWhatItSpeaks() async throws {
      try await stops("http", [.readHead, .hold]) { $0.steps.last == 1 }
    }

    @Test func whileSending() async throws {
      // A HEAD asks first whether there is a file to overwrite.
      let nothing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
      try await stops(
        "put+http", size: 64 << 20, [.readRequest, .send(nothing), .readHead, .read(1 << 20), .hold]
      ) { $0.steps.last == 4 }
    }

    @Test func whileWaitingForTheAnswer() async throws {
      try await stops("put+http", [.readRequest, .hold]) { $0.steps.last == 1 }
    }

    @Test func whileWaitingToTryAgain() async throws {
      let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"
      try await stops("put+http", [.readRequest, .send(busy), .hold]) { $0.steps.last == 2 }
    }

    @Test(arguments: ["http", "socks5h"]) func whileAProxyIsSilent(_ scheme: String) async throws {
      let proxy = ProxyPeer(to: 1, .silent)
      var count = 0
      try await measure {
        let push = try push(1000, to: "https://media.example/", "--proxy", "\(scheme)://127.0.0.1:\(proxy.port)")
        count += 1
        try await until("the proxy is asked") { [count] in proxy.seen.connections == count ? true : nil }
        return push
      }
    }

    /// The server ends cleanly even if it is stopped as soon as its URL can be read.
    @Test func aServerThatHasJustBegun() async throws {
      let begun = """
        for number in 1 2 3 4 5 6 7 8 9 10; do
          coproc SERVER { exec "$0" serve "$1" --listen 127.0.0.1:0 2>/dev/null; }
          pid=$SERVER_PID
          read -r url <&"${SERVER[0]}" && kill -TERM "$pid"
          wait "$pid" || exit
        done
        """
      let folder = try scratch.folder("received")
      let shell = try Command("/bin/bash", ["-c", begun, Tool.fullbore, folder], in: scratch)
      #expect(try await shell.wait() == .exited(0))
    }

    private func stops(
      _ scheme: String, size: Int = 100_000, _ script: [ScriptedPeer.Step],
      _ isThere: @escaping (ScriptedPeer.Seen) -> Bool
    ) async throws {
      let peer = ScriptedPeer(script)
      var count = 0
      try await measure {
        let push = try push(size, to: "\(scheme)://127.0.0.1:\(peer.port)/")
        count += 1
        try await until("the push is under way") { [count] in
          let seen = peer.seen
          return seen.steps.count == count && isThere(seen) ? true : nil
        }
        return push
      }
    }
  }
}
