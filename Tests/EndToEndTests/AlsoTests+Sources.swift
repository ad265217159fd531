import BlobTesting
import Foundation
import Synchronization
import TestSupport
import Testing

// Sources that are read once for all destinations, pipes, and watches.
extension EndToEnd.AlsoTests {
  /// A server with one film, which counts the bytes that it has given out.
  private static func film(_ bytes: [UInt8], hasRanges: Bool, _ sent: ServedBytes) -> HTTPPeer {
    HTTPPeer { request in
      var reply = HTTPPeer.Reply(200, ["ETag": "\"1\""], bytes)
      if hasRanges, let range = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-"),
        let first = range.first.flatMap({ Int($0) })
      {
        let last = range.count > 1 ? min(Int(range[1]) ?? 0, bytes.count - 1) : bytes.count - 1
        reply = HTTPPeer.Reply(
          206, ["ETag": "\"1\"", "Content-Range": "bytes \(first)-\(last)/\(bytes.count)"], Array(bytes[first...last]))
      }
      sent.count.withLock { $0 += reply.body.count }
      return reply
    }
  }

  final class ServedBytes: Sendable {
    let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
  }

  @Test(arguments: [true, false], ["put+", "tus+"])
  func aSourceAtAURLIsReadOnce(_ hasRanges: Bool, _ uploadProtocol: String) async throws {
    let file = try scratch.file("films/a.mov", (6 << 20) + 7)
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    let sent = ServedBytes()
    let film = Self.film(bytes, hasRanges: hasRanges, sent)
    let (nas, cloud) = try await servers()
    let push = try push(
      "\(film.url)a.mov", "\(uploadProtocol)\(nas.url)", "--also", "\(uploadProtocol)\(cloud.url)")
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    for server in [nas, cloud] { Folder(scratch.path("films")).expectSame(as: server.folder) }
    // With ranges, single bytes are asked for first.
    #expect(sent.value <= bytes.count + 100, "\(sent.value) of \(bytes.count)")
  }

  /// S3 gets the film in parts, and over plain HTTP reads each of them for its signature first.
  @Test func aSourceAtAURLGoesToS3Too() async throws {
    let file = try scratch.file("films/a.mov", (18 << 20) + 7)
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    let film = Self.film(bytes, hasRanges: true, ServedBytes())
    let (nas, _) = try await servers()
    let bucket = S3Peer()
    let push = try push(
      "\(film.url)a.mov", nas.url, "--also", "s3://media/in/",
      environment: S3Peer.environment.merging(["AWS_ENDPOINT_URL": "http://127.0.0.1:\(bucket.port)"]) { $1 })
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    Folder(scratch.path("films")).expectSame(as: nas.folder)
    #expect(bucket.objects["in/a.mov"]?.bytes == bytes)
  }

  /// The one that does not take it is left behind, and reads the film again when it is back.
  @Test(.timeLimit(.minutes(1))) func aDestinationThatStandsStillDoesNotStopTheOther() async throws {
    let file = try scratch.file("films/a.mov", (6 << 20) + 7)
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    let sent = ServedBytes()
    let film = Self.film(bytes, hasRanges: true, sent)
    let (nas, cloud) = try await servers()
    cloud.command.kill(SIGSTOP)
    let push = try push("\(film.url)a.mov", "tus+\(nas.url)", "--also", "tus+\(cloud.url)")
    try await until("one has it") { nas.folder.files()["a.mov"] }
    #expect(push.end == nil)
    cloud.command.kill(SIGCONT)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    for server in [nas, cloud] { Folder(scratch.path("films")).expectSame(as: server.folder) }
  }

  private func pipe(_ command: String, _ words: String...) throws -> Command {
    try Command("bash", ["-c", "exec \"$0\" push \"$@\" < <(\(command))", Tool.fullbore] + words, in: scratch)
  }

  @Test(arguments: ["tus+", "put+", ""]) func aPipeGoesToBoth(_ uploadProtocol: String) async throws {
    let file = try scratch.file("films/a.mov", (40 << 20) + 1)
    let (nas, cloud) = try await servers()
    let push = try pipe(
      "cat '\(file)'", "-", "--name", "a.mov", "--verify", nas.url, "--also", uploadProtocol + cloud.url)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    for server in [nas, cloud] { Folder(scratch.path("films")).expectSame(as: server.folder) }
  }

  @Test func aPipeGoesOnWithoutADestinationThatGivesUp() async throws {
    let file = try scratch.file("films/a.mov", 24 << 20)
    let (nas, cloud) = try await servers()
    let push = try pipe(
      "cat '\(file)'", "-", "--name", "a.mov", "--retries", "0", "--bwlimit", "16M", "tus+\(nas.url)", "--also",
      "tus+\(cloud.url)")
    try await until("some has arrived") { cloud.folder.received() > 4 << 20 ? true : nil }
    cloud.command.kill(SIGKILL)
    try await cloud.command.wait()
    #expect(try await push.wait() == .exited(1), "\(push.output)\(push.errors)")
    Folder(scratch.path("films")).expectSame(as: nas.folder)
  }

  /// The program of `--on-done` gets a file only once both have it.
  @Test func aWatchSendsToBoth() async throws {
    try scratch.file("gallery/a.JPG", 20_000)
    let (nas, cloud) = try await servers()
    let program = scratch.path("done.sh")
    try "#!/bin/sh\nbasename \"$1\" >> '\(scratch.path("done"))'\n".write(
      toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    func done() -> [String] {
      ((try? String(contentsOfFile: scratch.path("done"), encoding: .utf8)) ?? "").split(separator: "\n").map(
        String.init)
    }
    let watch = try await WatchProcess.start(
      to: nas.url, in: scratch, "--also", cloud.url, "--on-done", program, "--timeout", "1s")
    try await watch.until("a.JPG is done") { done() == ["a.JPG"] ? true : nil }
    cloud.command.kill(SIGKILL)
    try await cloud.command.wait()
    try scratch.file("gallery/b.JPG", 20_001)
    try await watch.until("one has b.JPG") { nas.folder.files()["b.JPG"] }
    try await watch.until("the other one is missed") {
      watch.command.errors.contains("127.0.0.1:\(cloud.port) does not answer") ? true : nil
    }
    #expect(done() == ["a.JPG"])
    let again = try await cloud.startAgain(in: elsewhere)
    try await watch.until("b.JPG is done") { done() == ["a.JPG", "b.JPG"] ? true : nil }
    Folder(scratch.path("gallery")).expectSame(as: again.folder)
    #expect(try await watch.stop() == .exited(130))
  }
}
