import BlobTesting
import Foundation
import TestSupport
import Testing

/// Uploads that nobody finished.
extension EndToEnd.S3Tests {
  @Test func orphansAreNamedAndDeleted() async throws {
    let peer = S3Peer()
    for (id, key) in [("1", "in/a.mov"), ("2", "in/b c.mov"), ("3", "out/d.mov")] {
      peer.change { $0.uploads[id] = S3PeerUpload(key: key, bytes: [1, 2, 3]) }
    }
    func orphans(_ arguments: String...) async throws -> Command {
      let abort = try Command(
        Tool.fullbore,
        ["abort", "--orphans", "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)"] + arguments,
        in: scratch, environment: keys())
      #expect(try await abort.wait() == .exited(0), "\(abort.output)\(abort.errors)")
      return abort
    }
    let dry = try await orphans("--dry-run")
    #expect(dry.output.contains("in/b c.mov") && dry.output.contains("2 forgotten uploads"), "\(dry.output)")
    #expect(peer.uploads.count == 3)
    let abort = try await orphans()
    #expect(abort.output.contains("in/a.mov") && abort.output.contains("Deleted 2"), "\(abort.output)")
    #expect(Set(peer.uploads.keys) == ["3"])
    #expect(try await orphans().output.contains("No forgotten uploads"))
  }

  /// Tails of a receiving server are deleted if they are old enough, and nothing else that is stored beside them.
  @Test func oldTailsAreDeleted() async throws {
    let peer = S3Peer()
    let id = "0123456789abcdef0123456789abcdef"
    let names = ["\(id).tail", "\(id).1.tail2", "fleet", "\(id).tail3", "notes.tail"].map { "in/.fullbore/\($0)" }
    peer.change { state in
      for name in names + ["in/.fullbore/f\(id.dropFirst()).tail", "in/\(id).tail"] {
        state.objects[name] = S3PeerObject(bytes: [1, 2, 3], tag: "\"1\"")
      }
      state.objects["in/.fullbore/f\(id.dropFirst()).tail"]?.made = Int64(time(nil)) - 60
    }
    func orphans(_ arguments: String...) async throws -> String {
      let abort = try Command(
        Tool.fullbore,
        ["abort", "--orphans", "s3://media/in", "--endpoint", "http://127.0.0.1:\(peer.port)"] + arguments,
        in: scratch, environment: keys())
      #expect(try await abort.wait() == .exited(0), "\(abort.output)\(abort.errors)")
      return abort.output
    }
    let all = try await orphans()
    #expect(all.contains("3 tails") && all.contains("--older-than"), "\(all)")
    let dry = try await orphans("--older-than", "1h", "-n")
    #expect(dry.contains("2 tails") && !dry.contains("Deleted"), "\(dry)")
    #expect(peer.objects.count == 7)
    let old = try await orphans("--older-than", "1h")
    #expect(old.contains(names[0]) && old.contains("Deleted 2 tails"), "\(old)")
    #expect(peer.objects.count == 5 && peer.objects[names[0]] == nil && peer.objects[names[1]] == nil)
  }

  /// An upload that the journal can resume is no orphan.
  @Test func anUploadThatCanBeResumedIsNoOrphan() async throws {
    let peer = S3Peer()
    let file = try scratch.file("video.mov", 48 << 20)
    let endpoint = "http://127.0.0.1:\(peer.port)"
    let push = try Command.fullbore(
      "push", file, "s3://media/in/", "--endpoint", endpoint, "--bwlimit", "16M", in: scratch, environment: keys())
    try await until("something has arrived") { peer.unfinished() > 0 || push.end != nil ? true : nil }
    push.kill(SIGKILL)
    try await push.wait()
    let abort = try Command.fullbore(
      "abort", "--orphans", "s3://media/", "--endpoint", endpoint, in: scratch, environment: keys())
    #expect(try await abort.wait() == .exited(0), "\(abort.output)\(abort.errors)")
    #expect(abort.output.contains("kept") && peer.uploads.count == 1, "\(abort.output)")
  }
}
