import BlobTesting
import Foundation
import Testing

extension EndToEnd {
  /// `s3://` with Ceph's S3 server, which `scripts/ceph` starts. Each test uses its own folder in the bucket.
  @Suite(.serialized, .enabled(if: Ceph.isThere, "no Ceph: scripts/ceph swift test --filter CephTests"))
  struct CephTests {
    let scratch = try! Scratch()
    let ceph: Ceph
    /// Ends with a slash.
    let place: String

    init() throws {
      ceph = try #require(Ceph())
      place = "s3://media/\(UInt64.random(in: 0...UInt64.max))/"
    }

    private func push(
      _ arguments: String..., status: Int32 = 0, _ more: [String: String] = [:],
      sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Command {
      try await run(["push"] + arguments, status, more, sourceLocation)
    }

    @discardableResult
    private func run(
      _ arguments: [String], _ status: Int32 = 0, _ more: [String: String] = [:],
      _ sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Command {
      let command = try start(arguments, more)
      let end = try await command.wait()
      #expect(end == .exited(status), "\(command.output)\(command.errors)", sourceLocation: sourceLocation)
      return command
    }

    private func start(_ arguments: [String], _ more: [String: String] = [:]) throws -> Command {
      try Command(Tool.fullbore, arguments, in: scratch, environment: ceph.environment.merging(more) { $1 })
    }

    /// Expects that Ceph returns what was sent.
    private func expectSame(_ folder: Folder) async throws {
      for name in folder.files().keys {
        let path = try await ceph.get(place + name, in: scratch)
        let isSame = FileManager.default.contentsEqual(atPath: path, andPath: "\(folder.path)/\(name)")
        #expect(isSame, "\(name) differs")
        try FileManager.default.removeItem(atPath: path)
      }
    }

    private func makeGallery() throws -> Folder {
      for number in 0..<10 { try scratch.file("gallery/2026/IMG \(number) ä+&=~'(1).jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", (24 << 20) + 1)
      return Folder(scratch.path("gallery"))
    }

    @Test(arguments: [[], ["--checksum", "sha256"], ["--checksum", "crc64nvme"]])
    func aFolderArrives(_ options: [String]) async throws {
      let gallery = try makeGallery()
      try await run(
        ["push", gallery.path + "/", place, "--verify", "--part-size", "5M", "--metadata", "a=b"] + options)
      try await expectSame(gallery)
      let again = try await push(gallery.path + "/", place)
      #expect(again.output.contains("done before"), "\(again.output)")
    }

    @Test func filesArriveOverTLS() async throws {
      let gallery = try makeGallery()
      _ = try await push(
        gallery.path + "/", place, "--endpoint", ceph.secure, "--cacert", ceph.authority, "--verify", "--part-size",
        "5M")
      try await expectSame(gallery)
      let refused = try await push(
        gallery.path + "/empty.txt", place, "--endpoint", ceph.secure, "--journal", scratch.newPath("journal"),
        status: 3)
      #expect(refused.errors.contains("self-signed"), "\(refused.errors)")
    }

    /// A small object and a large one.
    @Test(arguments: [1000, 17 << 20]) func otherBytesAreNotOverwritten(_ size: Int) async throws {
      let old = try scratch.file("old/a.mov", size, seed: 1)
      let other = try scratch.file("other/a.mov", size, seed: 2)
      _ = try await push(old, place)
      let refused = try await push(other, place, status: 1)
      #expect(refused.errors.contains("--overwrite"), "\(refused.output)\(refused.errors)")
      try await expectSame(Folder(scratch.path("old")))
      _ = try await push(other, place, "--overwrite", "--verify")
      try await expectSame(Folder(scratch.path("other")))
    }

    @Test func anInvalidBucketOrKeyIsReportedBeforeTheFirstByte() async throws {
      let file = try scratch.file("a.jpg", 1000)
      for (place, more, wanted) in [
        ("s3://nowhere/", [:], "no such bucket"),
        (place, ["AWS_ACCESS_KEY_ID": "AKIANOBODY"], "InvalidAccessKeyId"),
        (place, ["AWS_SECRET_ACCESS_KEY": "wrong"], "SignatureDoesNotMatch"),
      ] as [(String, [String: String], String)] {
        let command = try await push(file, place, status: 3, more)
        #expect((command.errors + command.output).contains(wanted), "\(command.output)\(command.errors)")
      }
    }

    @Test func killedPushGoesOnWithThePartsThatAreThere() async throws {
      let file = try scratch.file("gallery/video.mov", 64 << 20)
      for _ in 0..<2 {
        let push = try start(["push", file, place, "--part-size", "5M", "--bwlimit", "16M", "--parts-at-once", "2"])
        let before = try await ceph.parts(place + "video.mov", in: scratch)
        while push.end == nil, try await ceph.parts(place + "video.mov", in: scratch) < before + 3 {}
        push.kill(SIGKILL)
        #expect(try await push.wait() == .killed(by: SIGKILL), "\(push.errors)")
      }
      let held = try await ceph.parts(place + "video.mov", in: scratch)
      #expect(held >= 6)
      let resume = try await run(["resume", "-v"])
      try await expectSame(Folder(scratch.path("gallery")))
      // No unfinished upload is left that would cost money.
      let orphans = try await run(["abort", "--orphans", place])
      #expect(orphans.output.contains("No forgotten uploads"), "\(resume.output)\(orphans.output)")
    }

    @Test func abortFindsAndDeletesUploadsThatTheJournalDoesNotHave() async throws {
      let file = try scratch.file("b c ä.mov", 40 << 20)
      let push = try start(["push", file, place, "--part-size", "5M", "--bwlimit", "16M"])
      while push.end == nil, try await ceph.parts(place + "b c ä.mov", in: scratch) < 2 {}
      push.kill(SIGKILL)
      try await push.wait()
      let journal = scratch.newPath("journal")
      let dry = try await run(["abort", "--orphans", place, "--dry-run", "--journal", journal])
      #expect(dry.output.contains("b c ä.mov") && dry.output.contains("1 forgotten upload"), "\(dry.output)")
      #expect(try await ceph.parts(place + "b c ä.mov", in: scratch) >= 2)
      let abort = try await run(["abort", "--orphans", place, "--journal", journal])
      #expect(abort.output.contains("Deleted 1"), "\(abort.output)")
      #expect(try await ceph.parts(place + "b c ä.mov", in: scratch) == 0)
      // The upload that was removed from the journal starts again.
      try await run(["resume"])
      #expect(
        FileManager.default.contentsEqual(atPath: try await ceph.get(place + "b c ä.mov", in: scratch), andPath: file))
    }

    @Test func aGivenUpPushLeavesNothingThere() async throws {
      let file = try scratch.file("video.mov", 40 << 20)
      let push = try start(["push", file, place, "--part-size", "5M", "--bwlimit", "16M"])
      while push.end == nil, try await ceph.parts(place + "video.mov", in: scratch) < 2 {}
      push.kill(SIGKILL)
      try await push.wait()
      try await run(["abort", "--all"])
      #expect(try await ceph.parts(place + "video.mov", in: scratch) == 0)
    }

    @Test func aPipeArrives() async throws {
      let file = try scratch.file("pipe/stream.bin", 3 << 20)
      let pipe = try Command(
        "/bin/sh", ["-c", "exec '\(Tool.fullbore)' push - '\(place)stream.bin' <'\(file)'"], in: scratch,
        environment: ceph.environment)
      #expect(try await pipe.wait() == .exited(0), "\(pipe.output)\(pipe.errors)")
      try await expectSame(Folder(scratch.path("pipe")))
    }
  }
}

/// The Ceph server that `scripts/ceph` has started, from the environment.
struct Ceph {
  let endpoint: String
  /// The same server over TLS, and a file with its certificate authority.
  let secure: String
  let authority: String
  private let key: String
  private let secret: String

  static var isThere: Bool { Ceph() != nil }

  init?() {
    let variables = ProcessInfo.processInfo.environment
    guard let endpoint = variables["FULLBORE_CEPH"], let secure = variables["FULLBORE_CEPH_TLS"],
      let authority = variables["FULLBORE_CEPH_CA"], let key = variables["AWS_ACCESS_KEY_ID"],
      let secret = variables["AWS_SECRET_ACCESS_KEY"]
    else { return nil }
    (self.endpoint, self.secure, self.authority, self.key, self.secret) = (endpoint, secure, authority, key, secret)
  }

  /// Contains none of the machine's own settings.
  var environment: [String: String] {
    [
      "AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": key,
      "AWS_SECRET_ACCESS_KEY": secret,
      "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_CONFIG_FILE": "/dev/null",
      "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    ]
  }

  /// Downloads an object into a file.
  func get(_ place: String, in scratch: Scratch) async throws -> String {
    let path = scratch.newPath("object")
    let curl = try await curl(["--fail", "--output", path, url(place)], in: scratch)
    #expect(curl.end == .exited(0), "\(place): \(curl.errors)")
    return path
  }

  /// Counts the parts of unfinished uploads under a name.
  func parts(_ place: String, in scratch: Scratch) async throws -> Int {
    let key = encoded(String(place.dropFirst("s3://media/".count))).replacingOccurrences(of: "/", with: "%2F")
    let list = try await curl(["--fail", "\(endpoint)/media?prefix=\(key)&uploads="], in: scratch).output
    var count = 0
    for id in texts("UploadId", in: list) {
      // An upload that ends meanwhile has none.
      let parts = try await curl(["\(url(place))?uploadId=\(id)"], in: scratch).output
      count += texts("PartNumber", in: parts).count
    }
    return count
  }

  private func curl(_ arguments: [String], in scratch: Scratch) async throws -> Command {
    let program = try #require(Tool.find("curl"), "curl is not installed: scripts/bootstrap ceph")
    let file = scratch.path("curl")
    try "user = \"\(key):\(secret)\"\n".write(toFile: file, atomically: true, encoding: .utf8)
    let command = try Command(
      program,
      ["-sS", "-K", file, "--aws-sigv4", "aws:amz:us-east-1:s3", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
        + arguments, in: scratch)
    try await command.wait()
    return command
  }

  private func url(_ place: String) -> String { endpoint + "/" + encoded(String(place.dropFirst("s3://".count))) }

  private func encoded(_ path: String) -> String {
    path.addingPercentEncoding(
      withAllowedCharacters: CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/"))!
  }

  private func texts(_ name: String, in xml: String) -> [String] {
    xml.components(separatedBy: "<\(name)>").dropFirst().map { String($0.prefix { $0 != "<" }) }
  }
}
