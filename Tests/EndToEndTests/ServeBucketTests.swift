import BlobTesting
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// `fullbore serve --to s3://…` before S3 servers of other projects, and in this process.
  @Suite(.serialized) struct ServeBucketTests {
    let scratch = try! Scratch()

    func serve(_ endpoint: String, port: Int = 0, _ options: String...) async throws -> ServeProcess {
      try await ServeProcess.start(
        in: scratch, port: port, place: ["--to", "s3://media/in/", "--state", try scratch.folder("state")],
        options: ["--endpoint", endpoint] + options, environment: S3Peer.environment)
    }

    private func gallery() throws -> Folder {
      for number in 0..<10 { try scratch.file("gallery/2026/IMG \(number) ä+&.jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", (20 << 20) + 1)
      return Folder(scratch.path("gallery"))
    }

    private func push(_ arguments: String...) async throws -> (end: Command.End, command: Command) {
      let command = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
      return (try await command.wait(), command)
    }

    /// By each protocol, with what arrives read back through the server, and nothing of it on disk.
    @Test(.needs(.moto, .curl), arguments: ["put+", "tus+", "resumable+", "form+"])
    func receivesAFolder(by prefix: String) async throws {
      let peer = try await PeerServer.moto(in: scratch)
      try await peer.put("/media", in: scratch)
      let server = try await serve(peer.url)
      let gallery = try gallery()
      let (end, command) = try await push(gallery.path + "/", "\(prefix)\(server.url)")
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      for name in ["2026/IMG 3 ä+&.jpg", "empty.txt", "video.mov"] {
        let path =
          (prefix == "form+" ? name.split(separator: "/").last.map(String.init) ?? name : name)
          .addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? name
        let got = try scratch.folder("got") + "/file"
        let get = try Command(curl, ["-sSf", "-o", got, server.url + path], in: scratch)
        #expect(try await get.wait() == .exited(0), "\(name): \(get.errors)")
        let (sent, there) = (URL(fileURLWithPath: "\(gallery.path)/\(name)"), URL(fileURLWithPath: got))
        #expect(try Data(contentsOf: sent) == Data(contentsOf: there), "\(name) differs")
      }
      let manager = FileManager.default
      for name in try manager.subpathsOfDirectory(atPath: scratch.path("state")) {
        let size = try manager.attributesOfItem(atPath: scratch.path("state/\(name)"))[.size] as? Int ?? 0
        #expect(size < 16 << 10, "\(name) has \(size) bytes, which may be those of a file")
      }
    }

    /// In this process, so that what is left in the bucket can be counted.
    @Test func nothingIsLeftInTheBucket() async throws {
      let peer = S3Peer()
      let server = try await serve("http://127.0.0.1:\(peer.port)")
      let gallery = try gallery()
      for (number, prefix) in ["put+", "tus+", "resumable+"].enumerated() {
        let (end, command) = try await push(gallery.path + "/", "\(prefix)\(server.url)\(number)/")
        #expect(end == .exited(0), "\(prefix) \(command.output)\(command.errors)")
        for name in gallery.files().keys {
          let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(gallery.path)/\(name)"))
          #expect(peer.objects["in/\(number)/\(name)"].map { Data($0.bytes) } == bytes, "\(prefix) \(name)")
        }
      }
      #expect(peer.uploads.isEmpty)
      #expect(!peer.objects.keys.contains { $0.contains(".fullbore") })
    }

    /// The server is killed while a file arrives. The push waits, and the file goes on where a part was whole.
    @Test(arguments: ["tus+", "resumable+"]) func goesOnAfterAKill(by prefix: String) async throws {
      let peer = S3Peer()
      var server = try await serve("http://127.0.0.1:\(peer.port)")
      let file = try scratch.file("video.mov", (60 << 20) + 7)
      let push = try Command(
        Tool.fullbore, ["push", "--bwlimit", "30M", file, "\(prefix)\(server.url)"], in: scratch)
      try await until("two parts are there") { peer.uploads.values.contains { $0.parts.count >= 2 } ? true : nil }
      server.command.kill(SIGKILL)
      _ = try await server.command.wait()
      let before = peer.requests.count
      server = try await serve("http://127.0.0.1:\(peer.port)", port: server.port)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      #expect(peer.objects["in/video.mov"].map { Data($0.bytes) } == bytes)
      let again = peer.requests.dropFirst(before).filter { $0.hasPrefix("PUT") }.count
      #expect(again <= 7, "\(again) of 8 parts were sent again")
      #expect(peer.uploads.isEmpty && peer.objects.count == 1)
    }
  }
}
