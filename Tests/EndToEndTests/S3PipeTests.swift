import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// `fullbore push - s3://`: standard input is sent in parts.
  @Suite(.serialized) struct S3PipeTests {
    let scratch = try! Scratch()

    /// Pushes the output of a shell command. A file over 1 MiB would kill the process.
    private func push(_ command: String, _ peer: S3Peer, _ arguments: String...) throws -> Command {
      try Command(
        "bash",
        [
          "-c", "ulimit -f 1024; exec \"$0\" push \"$@\" < <(\(command))", Tool.fullbore, "-", "s3://media/film.mov",
          "--endpoint", "http://127.0.0.1:\(peer.port)",
        ] + arguments, in: scratch, environment: S3Peer.environment)
    }

    @Test func aPipeOfAnyLengthArrives() async throws {
      let file = try scratch.file("film.mov", (80 << 20) + 1)
      let peer = S3Peer()
      let push = try push("cat '\(file)'", peer)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      #expect(peer.objects["film.mov"].map { Data($0.bytes) } == bytes)
      #expect(peer.requests.filter { $0.contains("partNumber=") }.count == 3 && peer.uploads.isEmpty)
      #expect(push.errors.contains("312 GiB at most"), "\(push.errors)")
      #expect(push.peakMemory > 1 << 20)
      #expect(push.peakMemory <= most(64 << 20), "\(push.peakMemory >> 20) MiB")
      print("push of \(bytes.count) bytes through a pipe to S3: \(push.peakMemory >> 10) KiB at most")
    }

    @Test func partsLeftByAKilledPushAreFound() async throws {
      let peer = S3Peer()
      let push = try push("cat /dev/zero", peer, "--spool-memory", "5M", "--bwlimit", "20M")
      try await until("two parts have arrived: \(push.errors)") {
        if let end = push.end { throw Command.Failure("the push ended: \(end) \(push.errors)") }
        return peer.unfinished() > 8 << 20 ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
      #expect(!peer.uploads.isEmpty)
      let orphans = try Command(
        Tool.fullbore, ["abort", "--orphans", "s3://media/", "--endpoint", "http://127.0.0.1:\(peer.port)", "-n"],
        in: scratch, environment: S3Peer.environment)
      #expect(try await orphans.wait() == .exited(0), "\(orphans.errors)")
      #expect(orphans.output.contains("standard input, which cannot be read again"), "\(orphans.output)")
      #expect(orphans.output.contains("'fullbore abort 1' deletes it"), "\(orphans.output)")
      let abort = try Command(
        Tool.fullbore, ["abort", "--all"], in: scratch, environment: S3Peer.environment)
      #expect(try await abort.wait() == .exited(0), "\(abort.output)\(abort.errors)")
      #expect(peer.uploads.isEmpty && peer.objects.isEmpty)
    }
  }
}
