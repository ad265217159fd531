import Foundation
import Testing

extension EndToEnd {
  /// `serve --tls-cert --tls-key` with Fullbore's client and with curl.
  @Suite(.serialized) struct TLSTests {
    let scratch = try! Scratch()

    /// Makes `cert.pem` and `key.pem` for 127.0.0.1.
    private func makeIdentity() async throws -> (certificate: String, key: String) {
      let openssl = try #require(Peer.openssl.path, Peer.openssl.reason)
      let (certificate, key) = (scratch.path("cert.pem"), scratch.path("key.pem"))
      let make = try Command(
        openssl,
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
          "/CN=fullbore test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
        ], in: scratch)
      #expect(try await make.wait() == .exited(0), "\(make.errors)")
      return (certificate, key)
    }

    @Test(.needs(.openssl), arguments: ["tus+", "put+", ""])
    func aFolderArrivesOverTLS(_ uploadProtocol: String) async throws {
      let (certificate, key) = try await makeIdentity()
      for number in 0..<20 { try scratch.file("gallery/IMG \(number).jpg", 50_000 + number) }
      try scratch.file("gallery/empty.txt", 0)
      try scratch.file("gallery/video.mov", 24 << 20)
      let server = try await ServeProcess.start(in: scratch, "--tls-cert", certificate, "--tls-key", key)
      #expect(server.url.hasPrefix("https://"))
      let source = scratch.path("gallery/")
      let untrusted = try await fullbore("push", source, uploadProtocol + server.url, "--retries", "0", in: scratch)
      #expect(untrusted.end != .exited(0) && server.folder.files().isEmpty)
      #expect((untrusted.command.errors + untrusted.command.output).contains("certificate"))
      let (end, push) = try await fullbore(
        "push", source, uploadProtocol + server.url, "--cacert", certificate, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.openssl)) func killedServerAndClientGoOnOverTLS() async throws {
      let (certificate, key) = try await makeIdentity()
      let file = try scratch.file("gallery/video.mov", 48 << 20)
      var server = try await ServeProcess.start(in: scratch, "--tls-cert", certificate, "--tls-key", key)
      var held = 0
      for round in 0..<4 {
        let push = try Command.fullbore(
          "push", file, "tus+\(server.url)", "--cacert", certificate, "--bwlimit", "24M", in: scratch)
        try await until("more has arrived") {
          server.folder.unfinished() > held + (5 << 20) || push.end != nil ? true : nil
        }
        let killed = round % 2 == 0 ? push : server.command
        killed.kill(SIGKILL)
        try await killed.wait()
        held = server.folder.unfinished()
        #expect(held >= (round + 1) * (5 << 20), "it began anew")
        if round % 2 == 0 { continue }
        server = try await ServeProcess.start(
          in: scratch, port: server.port, "--tls-cert", certificate, "--tls-key", key)
        push.kill(SIGKILL)
        try await push.wait()
      }
      let (end, push) = try await fullbore("resume", in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test(.needs(.openssl, .curl)) func curlUploadsAndReadsBackOverTLS() async throws {
      let curl = try #require(Peer.curl.path, Peer.curl.reason)
      let (certificate, key) = try await makeIdentity()
      let file = try scratch.file("gallery/video.mov", (32 << 20) + 1)
      let server = try await ServeProcess.start(in: scratch, "--tls-cert", certificate, "--tls-key", key)
      let upload = try Command(curl, ["-sSf", "--cacert", certificate, "-T", file, server.url], in: scratch)
      #expect(try await upload.wait() == .exited(0), "\(upload.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      let copy = scratch.path("copy.mov")
      let get = try Command(curl, ["-sSf", "--cacert", certificate, "-o", copy, server.url + "video.mov"], in: scratch)
      #expect(try await get.wait() == .exited(0), "\(get.errors)")
      #expect(FileManager.default.contentsEqual(atPath: file, andPath: copy))
      let none = try Command(curl, ["-sSf", server.url], in: scratch)
      #expect(try await none.wait() == .exited(60), "trusted without being asked to")
    }

    @Test(.needs(.openssl)) func theErrorOfAKeyNamesTheFaultAndShowsNoKey() async throws {
      let (certificate, key) = try await makeIdentity()
      let folder = try scratch.folder("served")
      let secret = try String(contentsOfFile: key, encoding: .utf8).split(separator: "\n")[1]
      func serve(_ more: String...) throws -> Command {
        try Command(Tool.fullbore, ["serve", folder, "--listen", "127.0.0.1:0"] + more, in: scratch)
      }
      let half = try serve("--tls-cert", certificate)
      #expect(try await half.wait() == .exited(2))
      let wrong = try serve("--tls-cert", certificate, "--tls-key", certificate)
      #expect(try await wrong.wait() == .exited(1))
      #expect(wrong.errors.contains("the key \(certificate) cannot be used"), "\(wrong.errors)")
      let swapped = try serve("--tls-cert", key, "--tls-key", key)
      #expect(try await swapped.wait() == .exited(1))
      try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: key)
      let open = try serve("--tls-cert", certificate, "--tls-key", key)
      try await until("it listens") { open.output.contains("\n") ? true : nil }
      open.kill(SIGTERM)
      try await open.wait()
      #expect(open.errors.contains("warning: others can read the key"), "\(open.errors)")
      for command in [wrong, swapped, open] { #expect(!(command.errors + command.output).contains(secret)) }
    }
  }
}
