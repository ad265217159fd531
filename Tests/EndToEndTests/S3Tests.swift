import BlobTesting
import TestSupport
import Foundation
import Synchronization
import Testing

extension EndToEnd {
  /// `s3://` with the real binary: with a strict server in this process, and with servers of other projects.
  @Suite(.serialized) struct S3Tests {
    let scratch = try! Scratch()

    func keys(_ more: [String: String] = [:]) -> [String: String] {
      S3Peer.environment.merging(more) { $1 }
    }

    func makeGallery() throws -> Folder {
      for number in 0..<30 { try scratch.file("gallery/2026/IMG \(number) ä+&.jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", (40 << 20) + 1)
      return Folder(scratch.path("gallery"))
    }

    func push(
      _ arguments: String..., environment: [String: String]? = nil
    ) async throws -> (end: Command.End, command: Command) {
      let command = try Command(
        Tool.fullbore, ["push"] + arguments, in: scratch, environment: environment ?? keys())
      return (try await command.wait(), command)
    }

    func expectSame(_ gallery: Folder, in peer: S3Peer, below prefix: String) throws {
      let there = peer.objects
      #expect(Set(there.keys) == Set(gallery.files().keys.map { prefix + $0 }))
      for name in gallery.files().keys {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(gallery.path)/\(name)"))
        #expect(there[prefix + name].map { Data($0.bytes) } == bytes, "\(name) differs")
      }
    }

    /// Keys that are refused are refused for every file: it is said once, and the rest is not tried.
    @Test(arguments: ["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "AuthFailure"])
    func refusedKeysEndThePushAtOnce(_ code: String) async throws {
      for number in 0..<300 { try scratch.file("gallery/\(number).jpg", 3_000, seed: UInt64(number)) }
      let stored = Atomic(0)
      var options = S3Peer.Options()
      options.refuse = { _, request in
        if request.method == "PUT" { stored.add(1, ordering: .relaxed) }
        return stored.load(ordering: .relaxed) > 20 ? (403, code) : nil
      }
      let peer = S3Peer(options)
      let (end, command) = try await push(
        "--jobs", "8", scratch.path("gallery/"), "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)")
      #expect(end == .exited(3), "\(command.output)\(command.errors)")
      #expect(stored.load(ordering: .relaxed) < 40)
      let lines = command.errors.split(separator: "\n")
      #expect(lines.count == 2 && lines.last?.contains("nothing else would succeed") == true, "\(command.errors)")
      #expect(command.output.contains("; 1 failed"), "\(command.output)")
    }

    /// Sends from a server to S3 without the disk: in one piece, and in parts that are read concurrently.
    @Test func aFileAtAURLIsSentToS3() async throws {
      let server = try await ServeProcess.start(in: scratch)
      try scratch.file("received/small.jpg", 50_000)
      try scratch.file("received/film.mov", (24 << 20) + 1)
      let peer = S3Peer()
      // A file over 1 MiB would kill the process.
      let command = try Command(
        "bash",
        [
          "-c", "ulimit -f 1024; exec \"$0\" \"$@\"", Tool.fullbore, "push", "\(server.url)small.jpg",
          "\(server.url)film.mov", "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)",
        ], in: scratch, environment: keys())
      #expect(try await command.wait() == .exited(0), "\(command.output)\(command.errors)")
      try expectSame(server.folder, in: peer, below: "in/")
    }

    /// Facts about camera roll files are sent as metadata; the user's own metadata has priority.
    @Test func factsAboutACameraRollAreSentAsMetadata() async throws {
      for name in ["IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC", "IMG_0002 ä%.CR2", "IMG_0002 ä%.JPG"] {
        try scratch.file("card/DCIM/100APPLE/\(name)", 10_000)
      }
      let taken = Array("2019:05:06 07:08:09\0".utf8)
      let tiff: [UInt8] =
        [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x32, 1, 2, 0, 20, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0] + taken
      let exif = Array("Exif\0\0".utf8) + tiff
      let photo = [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif + [UInt8](repeating: 0, count: 5000)
      try Data(photo).write(to: URL(fileURLWithPath: scratch.path("card/DCIM/100APPLE/IMG_0002 ä%.JPG")))
      try scratch.file("elsewhere/IMG_0003.JPG", 1000)
      let peer = S3Peer()
      let (end, command) = try await push(
        scratch.path("card/DCIM/100APPLE/"), scratch.path("elsewhere/"), "s3://media/in/", "--endpoint",
        "http://127.0.0.1:\(peer.port)", "--metadata", "kind=mine")
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      func told(_ name: String) -> [String: String] {
        let fields = peer.objects["in/\(name)"]?.fields.filter { $0.key.hasPrefix("x-amz-meta-") } ?? [:]
        return Dictionary(uniqueKeysWithValues: fields.map { (String($0.key.dropFirst(11)), $0.value) })
      }
      // The scratch folder's files have this modification time.
      let plain = ["kind": "mine", "mtime": "1700000000"]
      func and(_ more: [String: String]) -> [String: String] { plain.merging(more) { $1 } }
      #expect(told("IMG_0001.MOV") == and(["pairing": "live-photo", "pair": "IMG_0001.HEIC"]))
      let raw = [
        "pairing": "raw+picture", "pair": "IMG_0002 %C3%A4%25.JPG", "captured": "2019-05-06T07:08:09",
      ]
      #expect(told("IMG_0002 ä%.CR2") == and(raw))
      #expect(told("IMG_0002 ä%.JPG")["captured"] == "2019-05-06T07:08:09")
      #expect(told("IMG_0003.JPG") == plain)
    }

    @Test func aFolderArrivesAndIsNotSentAgain() async throws {
      let peer = S3Peer()
      let gallery = try makeGallery()
      let endpoint = "http://127.0.0.1:\(peer.port)"
      let (end, first) = try await push(
        gallery.path + "/", "s3://media/in/", "--endpoint", endpoint, "--storage-class", "STANDARD_IA", "--metadata",
        "trip=Norway", "--verify")
      #expect(end == .exited(0), "\(first.output)\(first.errors)")
      try expectSame(gallery, in: peer, below: "in/")
      let film = try #require(peer.objects["in/video.mov"])
      #expect(film.fields["content-type"] == "video/quicktime" && film.fields["x-amz-meta-trip"] == "Norway")
      #expect(film.fields["x-amz-storage-class"] == "STANDARD_IA" && film.tag.hasSuffix("-6\""), "\(film.tag)")

      let before = peer.requests.count
      let (again, second) = try await push(gallery.path + "/", "s3://media/in/", "--endpoint", endpoint)
      #expect(again == .exited(0), "\(second.output)\(second.errors)")
      #expect(peer.requests.count == before + 1)
      // The file that the server lost is sent again.
      peer.change { $0.objects["in/empty.txt"] = nil }
      let (checked, third) = try await push(gallery.path + "/", "s3://media/in/", "--endpoint", endpoint, "--check")
      #expect(checked == .exited(0), "\(third.output)\(third.errors)")
      try expectSame(gallery, in: peer, below: "in/")
    }

    @Test func aProfileNamesKeysAndEndpoint() async throws {
      let peer = S3Peer()
      let mine = peer.options.credentials
      let file = try scratch.file("a.jpg", 1000)
      try "[mine]\naws_access_key_id=\(mine.accessKey)\naws_secret_access_key=\(mine.secretKey)\n"
        .write(toFile: scratch.path("credentials"), atomically: true, encoding: .utf8)
      try "[profile mine]\nendpoint_url=http://127.0.0.1:\(peer.port)\n"
        .write(toFile: scratch.path("config"), atomically: true, encoding: .utf8)
      let (end, command) = try await push(
        file, "s3://media/b.jpg", "--profile", "mine",
        environment: keys([
          "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
          "AWS_SHARED_CREDENTIALS_FILE": scratch.path("credentials"),
          "AWS_CONFIG_FILE": scratch.path("config"),
        ]))
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(peer.objects["b.jpg"]?.bytes.count == 1000)
    }

    @Test func anInvalidBucketOrKeyIsReportedBeforeTheFirstByte() async throws {
      let peer = S3Peer()
      let file = try scratch.file("a.jpg", 1000)
      let endpoint = "http://127.0.0.1:\(peer.port)"
      for (place, environment, wanted, status) in [
        ("s3://nowhere/", keys(), "no such bucket", 3),
        ("s3://media/", keys(["AWS_ACCESS_KEY_ID": "AKIANOBODY"]), "InvalidAccessKeyId", 3),
        ("s3://media/", keys(["AWS_SECRET_ACCESS_KEY": "wrong"]), "SignatureDoesNotMatch", 3),
        ("s3://media/", keys(["AWS_ACCESS_KEY_ID": ""]), "no S3 credentials", 2),
      ] as [(String, [String: String], String, Int32)] {
        let (end, command) = try await push(file, place, "--endpoint", endpoint, environment: environment)
        #expect(
          end == .exited(status) && (command.errors + command.output).contains(wanted),
          "\(command.output)\(command.errors)")
      }
      #expect(peer.objects.isEmpty)
    }

    /// A push is killed at any byte: parts that have arrived are not sent again, and no unfinished upload is left that
    /// would cost money.
    @Test func killedPushGoesOnWithThePartsThatAreThere() async throws {
      let peer = S3Peer()
      let file = try scratch.file("gallery/video.mov", 96 << 20)
      let endpoint = "http://127.0.0.1:\(peer.port)"
      var held: Int64 = 0
      for _ in 0..<4 {
        let push = try Command.fullbore(
          "push", file, "s3://media/in/", "--endpoint", endpoint, "--part-size", "5M", "--bwlimit", "40M",
          "--parts-at-once", "2", in: scratch, environment: keys())
        try await until("more has arrived") { peer.unfinished() > held + (12 << 20) || push.end != nil ? true : nil }
        push.kill(SIGKILL)
        #expect(try await push.wait() == .killed(by: SIGKILL))
        #expect(peer.uploads.count == 1, "it began anew")
        held = peer.unfinished()
      }
      // The endpoint is in the journal; the keys are not.
      let resume = try Command.fullbore("resume", in: scratch, environment: keys())
      #expect(try await resume.wait() == .exited(0), "\(resume.output)\(resume.errors)")
      try expectSame(Folder(scratch.path("gallery")), in: peer, below: "in/")
      #expect(peer.uploads.isEmpty)
      let sent = peer.requests.filter { $0.contains("partNumber=") }.count
      // Twenty parts, and for each kill at most the active parts and the one whose receipt was lost.
      #expect(sent <= 20 + 4 * 4, "\(sent) parts were sent")
    }

    @Test func aKilledPushCanBeGivenUpThere() async throws {
      let peer = S3Peer()
      let file = try scratch.file("video.mov", 48 << 20)
      let push = try Command.fullbore(
        "push", file, "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)", "--bwlimit", "16M", in: scratch,
        environment: keys())
      try await until("something has arrived") { peer.unfinished() > 0 || push.end != nil ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      let abort = try Command.fullbore("abort", "--all", in: scratch, environment: keys())
      #expect(try await abort.wait() == .exited(0), "\(abort.output)\(abort.errors)")
      #expect(peer.uploads.isEmpty && peer.objects.isEmpty)
    }

    @Test func memoryStaysSmallWithSixteenParts() async throws {
      let peer = S3Peer()
      let file = try scratch.file("video.mov", 256 << 20)
      let (end, command) = try await push(
        file, "s3://media/", "--endpoint", "http://127.0.0.1:\(peer.port)", "--parts-at-once", "16", "--part-size", "8M"
      )
      #expect(end == .exited(0), "\(command.output)\(command.errors)")
      #expect(command.peakMemory <= most(64 << 20), "\(command.peakMemory >> 20) MiB")
    }

    // MARK: Servers of other projects
  }
}

extension S3Peer {
  /// Contains the keys, and none of the machine's own settings.
  static let environment: [String: String] = {
    let mine = Options().credentials
    return [
      "AWS_ACCESS_KEY_ID": mine.accessKey, "AWS_SECRET_ACCESS_KEY": mine.secretKey, "AWS_SESSION_TOKEN": "",
      "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
      "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
    ]
  }()
}

extension PeerServer {
  static func moto(in scratch: Scratch) async throws -> PeerServer {
    let program = try #require(Peer.moto.path, Peer.moto.reason)
    return try await PeerServer(program, in: scratch) { port in ["-H", "127.0.0.1", "-p", "\(port)"] }
  }

  /// Each folder in `folder` is a bucket.
  static func rcloneS3(_ folder: String, key: String, secret: String, in scratch: Scratch) async throws -> PeerServer {
    let program = try #require(Peer.rcloneS3.path, Peer.rcloneS3.reason)
    return try await PeerServer(program, in: scratch) { port in
      ["serve", "s3", folder, "--addr", "127.0.0.1:\(port)", "--auth-key", "\(key),\(secret)"]
    }
  }

  /// Sends an empty PUT.
  func put(_ path: String, in scratch: Scratch) async throws {
    let curl = try #require(Peer.curl.path, Peer.curl.reason)
    let put = try Command(curl, ["-sSf", "-X", "PUT", "-H", "Content-Length: 0", url + path], in: scratch)
    #expect(try await put.wait() == .exited(0), "\(put.errors)")
  }
}
