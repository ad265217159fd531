import BlobTesting
import TestSupport
import Foundation
import Testing

// Sending a rendition: replaced originals, kills, memory and disk.
extension EndToEnd.RenditionTests {
  /// The journal stores the length of a rendition that was sent, and `--check` compares it.
  @Test(.needs(.photographs)) func aRenditionThatWasReplacedIsSentAgain() async throws {
    try photograph(.photographs, "rocket.jpg", as: "card/IMG_0001.JPG")
    try write(packet(Self.corners), "card/IMG_0001.xmp")
    let server = try await ServeProcess.start(in: scratch)
    func push(_ options: String...) async throws -> String {
      let push = try Command(
        Tool.fullbore,
        ["push", "--edits", "current", "--exclude", "*.xmp", "--overwrite"] + options
          + [scratch.path("card/"), "put+" + server.url], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      return push.output
    }
    func arrived() throws -> Data {
      try Data(contentsOf: URL(fileURLWithPath: server.folder.path + "/IMG_E0001.JPG"))
    }
    _ = try await push()
    let whole = try arrived()
    _ = try await push("--edit-quality", "50")
    #expect(try arrived().count < whole.count)
    _ = try await push()
    #expect(try arrived() == whole)
    #expect(try await push("--check").contains("1 done before"))
    try Data("another".utf8).write(to: URL(fileURLWithPath: server.folder.path + "/IMG_E0001.JPG"))
    #expect(try await push("--check").contains("1 file sent"))
    #expect(try arrived() == whole)
  }

  /// S3 requires the length before the first byte, and the rendition is larger than the spool.
  @Test(.needs(.photographs)) func aServerThatWantsLengthsGetsThem() async throws {
    try photograph(.photographs, "hubble_deep_field.jpg", as: "card/DCIM/IMG_0001.JPG")
    try write(packet(Self.corners, orientation: 6), "card/DCIM/IMG_0001.xmp")
    let peer = S3Peer()
    let mine = peer.options.credentials
    let words = [
      "push", "--edits", "current", scratch.path("card/"), "s3://media/in/", "--endpoint",
      "http://127.0.0.1:\(peer.port)", "--region", "us-east-1", "--spool-memory", "128K", "--verify",
    ]
    let keys = [
      "AWS_ACCESS_KEY_ID": mine.accessKey, "AWS_SECRET_ACCESS_KEY": mine.secretKey, "AWS_CONFIG_FILE": "/dev/null",
      "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
    ]
    let push = try Command(Tool.fullbore, words, in: scratch, environment: keys)
    #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
    let server = try await ServeProcess.start(in: scratch)
    let reference = try await fullbore("push", "--edits", "current", scratch.path("card/"), server.url, in: scratch)
    #expect(reference.end == .exited(0))
    let arrived = try Data(contentsOf: URL(fileURLWithPath: server.folder.path + "/DCIM/IMG_E0001.JPG"))
    #expect(arrived.count > 128 << 10)
    #expect(peer.objects["in/DCIM/IMG_E0001.JPG"].map { Data($0.bytes) } == arrived)
  }

  /// A killed push resumes with the same bytes. If the original has changed, it starts again.
  @Test(.needs(.photographs), arguments: ["tus+", "resumable+"], [false, true])
  func aKilledPushGoesOn(_ uploadProtocol: String, _ changes: Bool) async throws {
    try photograph(.photographs, "hubble_deep_field.jpg", as: "card/DCIM/IMG_0001.JPG")
    try write(packet((0, 0, 1, 0.99), angle: 0, orientation: 6), "card/DCIM/IMG_0001.xmp")
    let server = try await ServeProcess.start(in: scratch)
    let (apart, fresh) = (try Scratch(), try Scratch())
    let whole = try await ServeProcess.start(in: apart)
    let push = try Command.fullbore(
      "push", "--edits", "current", "--edit-quality", "100", "--bwlimit", "200K", "--part-size", "64K", "--exclude",
      "*.xmp",
      scratch.path("card/"), uploadProtocol + server.url, in: scratch)
    try await until("a part has arrived") { server.folder.unfinished() > 150_000 || push.end != nil ? true : nil }
    push.kill(SIGKILL)
    #expect(try await push.wait() == .killed(by: SIGKILL))
    #expect(server.folder.unfinished() > 150_000)
    #expect(server.folder.files()["DCIM/IMG_E0001.JPG"] == nil)
    if changes { try write(packet((0, 0, 1, 0.98), angle: 0, orientation: 6), "card/DCIM/IMG_0001.xmp") }

    let (end, resumed) = try await fullbore(
      "push", "--json", "--edits", "current", "--edit-quality", "100", "--exclude", "*.xmp", scratch.path("card/"),
      uploadProtocol + server.url, in: scratch)
    #expect(end == .exited(0), "\(resumed.output)\(resumed.errors)")
    let line = try #require(
      resumed.output.split(separator: "\n").first { $0.contains("IMG_E0001") && $0.contains("done") })
    #expect(line.contains("\"resumed_from\":0,") == changes && line.contains("resumed_from"), "\(line)")
    let reference = try await fullbore(
      "push", "--edits", "current", "--edit-quality", "100", scratch.path("card/"), whole.url, in: fresh)
    #expect(reference.end == .exited(0))
    #expect(server.folder.hasSameBytes("DCIM/IMG_E0001.JPG", as: whole.folder))
  }

  /// The helper cannot write to a file because of a kernel limit, and has no temporary folder.
  @Test(.needs(.cjpeg)) func aHundredMegapixelsStayWithinMemoryAndWriteNoFile() async throws {
    let photo = scratch.path("large.jpg")
    try TallPicture.write(to: photo, in: scratch)
    for (edit, most) in [
      ([], 100), (["--corners=0.05,0.05,0.95,0.95,0"], 100), (["--orientation=6"], 400),
      (["--corners=0.05,0.05,0.95,0.95,2"], 400),
    ] {
      let words = (["render"] + edit).joined(separator: " ")
      let run = try Command(
        "bash", ["-c", "set -o pipefail; \"$0\" \(words) <\"$1\" | tail -c 2 | od -An -tx1; exit", helper, photo],
        in: scratch, environment: ["TMPDIR": "/nowhere", "HOME": "/nowhere"])
      // The memory of the helper, which is a child of the shell.
      var peak = 0
      try await until("it ends", .seconds(300)) {
        peak = max(peak, Self.peakMemory(ofChildrenOf: run.pid))
        return run.end == nil ? nil : true
      }
      #expect(run.end == .exited(0), "\(words): \(run.errors)")
      #expect(run.output.trimmingCharacters(in: .whitespacesAndNewlines) == "ff d9")
      print("\(words): \(peak >> 20) MiB")
      #expect(peak <= most << 20 && peak > 30 << 20, "\(words): \(peak >> 20) MiB")
    }
  }

  /// The helper cannot even write to its output file.
  @Test(.needs(.photographs)) func theHelperWritesNoFile() async throws {
    try photograph(.photographs, "rocket.jpg", as: "photo.jpg")
    for target in ["\(scratch.path("out.jpg"))", "/dev/stdout"] {
      let words = ["-c", "\"$0\" render <\"$1\" >\"$2\" 2>&1", helper, scratch.path("photo.jpg"), target]
      let run = try Command("bash", words, in: scratch)
      #expect(try await run.wait() != .exited(0))
      #expect(run.output.isEmpty)
    }
    let size = try FileManager.default.attributesOfItem(atPath: scratch.path("out.jpg"))[.size] as? Int
    #expect(size == 0)
  }
}
