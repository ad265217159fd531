import BlobTesting
import TestSupport
import Foundation
import Testing

// moto and rclone.
extension EndToEnd.S3Tests {
  @Test(.needs(.moto, .curl)) func motoReceivesAFolder() async throws {
    let peer = try await PeerServer.moto(in: scratch)
    try await peer.put("/media", in: scratch)
    let gallery = try makeGallery()
    let (end, command) = try await push(
      gallery.path + "/", "s3://media/in/", "--endpoint", peer.url, "--verify", "--part-size", "5M")
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    // This server supports conditions: other bytes under an existing name are refused.
    let other = try scratch.file("other/empty.txt", 10)
    let (refused, again) = try await push(other, "s3://media/in/", "--endpoint", peer.url)
    #expect(refused == .exited(1) && again.errors.contains("--overwrite"), "\(again.output)\(again.errors)")
    let (replaced, last) = try await push(other, "s3://media/in/", "--endpoint", peer.url, "--overwrite", "--verify")
    #expect(replaced == .exited(0), "\(last.output)\(last.errors)")
  }

  /// This server checks signatures, but is lenient otherwise.
  @Test(.needs(.rcloneS3)) func rcloneReceivesAFolder() async throws {
    let mine = S3Peer.Options().credentials
    let received = try scratch.folder("received/media")
    let peer = try await PeerServer.rcloneS3(
      scratch.path("received"), key: mine.accessKey, secret: mine.secretKey, in: scratch)
    let gallery = try makeGallery()
    let (end, command) = try await push(gallery.path + "/", "s3://media/", "--endpoint", peer.url, "--verify")
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
    gallery.expectSame(as: Folder(received))
    let file = gallery.path + "/empty.txt"
    let (refused, again) = try await push(
      file, "s3://media/", "--endpoint", peer.url, environment: keys(["AWS_SECRET_ACCESS_KEY": "wrong"]))
    #expect(refused == .exited(3) && again.errors.contains("SignatureDoesNotMatch"), "\(again.output)\(again.errors)")
  }

  /// This server ignores the condition that protects existing objects, so the client checks each name.
  @Test(.needs(.rcloneS3)) func namesThatAreTakenAreKeptAtRclone() async throws {
    let mine = S3Peer.Options().credentials
    let received = try scratch.folder("received/media")
    let peer = try await PeerServer.rcloneS3(
      scratch.path("received"), key: mine.accessKey, secret: mine.secretKey, in: scratch)
    for number in 0..<30 { try scratch.file("gallery/\(number).jpg", 1000, seed: UInt64(number)) }
    try scratch.file("gallery/film.mov", 20 << 20)
    for name in ["0.jpg", "1.jpg", "17.jpg", "29.jpg", "film.mov"] {
      try scratch.file("received/media/\(name)", 1000, seed: 99)
    }
    let kept = Folder(received).files().count
    let others = try Data(contentsOf: URL(fileURLWithPath: received + "/0.jpg"))
    let (end, command) = try await push(scratch.path("gallery") + "/", "s3://media/", "--endpoint", peer.url)
    #expect(kept == 5 && end == .exited(1), "\(command.output)\(command.errors)")
    for name in ["0.jpg", "1.jpg", "17.jpg", "29.jpg", "film.mov"] {
      #expect(try Data(contentsOf: URL(fileURLWithPath: received + "/" + name)) == others, "\(name) was replaced")
    }
    #expect(Folder(received).files().count == 31)
  }

  @Test(.needs(.moto, .curl)) func killedPushGoesOnAtMoto() async throws {
    let peer = try await PeerServer.moto(in: scratch)
    try await peer.put("/media", in: scratch)
    let file = try scratch.file("video.mov", 64 << 20)
    for _ in 0..<2 {
      let push = try Command.fullbore(
        "push", file, "s3://media/in/", "--endpoint", peer.url, "--part-size", "5M", "--bwlimit", "16M", in: scratch,
        environment: keys())
      let before = peer.command.errors.components(separatedBy: "partNumber=").count
      try await until("parts have arrived") {
        peer.command.errors.components(separatedBy: "partNumber=").count > before + 2 || push.end != nil ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
    }
    let (end, command) = try await push(
      file, "s3://media/in/", "--endpoint", peer.url, "--part-size", "5M", "--verify")
    #expect(end == .exited(0), "\(command.output)\(command.errors)")
  }
}
