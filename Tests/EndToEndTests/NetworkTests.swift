import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Network features between a push and its server: TLS, proxies, redirects, IPv6.
  @Suite(.serialized) struct NetworkTests {
    private let scratch = try! Scratch()

    @Test(.needs(.nginx)) func nginxReceivesOverTLS() async throws {
      let authority = try await TestCertificate.selfSigned(for: "DNS:authority.example", in: scratch)
      let certificate = try await authority.signed(for: "IP:127.0.0.1", in: scratch)
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(into: folder.path, secure: certificate, in: scratch)
      for number in 0..<5 { try scratch.file("gallery/IMG_\(number).jpg", 300_000 + number) }
      let (gallery, port) = (scratch.path("gallery/"), try #require(URL(string: server.url)?.port))

      let (refused, stranger) = try await fullbore("push", gallery, server.url + "/", in: scratch)
      #expect(refused == .exited(3))
      #expect(stranger.errors.contains("comes from an authority that nothing here vouches for"), "\(stranger.errors)")
      #expect(stranger.errors.contains("--cacert FILE"))
      let (misnamed, other) = try await fullbore(
        "push", "--cacert", authority.path, gallery, "https://localhost:\(port)/", in: scratch)
      #expect(misnamed == .exited(3))
      #expect(other.errors.contains("is not for 'localhost'"), "\(other.errors)")
      #expect(folder.files().isEmpty)

      let (taken, push) = try await fullbore("push", "--cacert", authority.path, gallery, server.url + "/", in: scratch)
      #expect(taken == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: folder)
    }

    /// The name server does not respond, so the message must not blame the server.
    @Test func namesThatNobodyLooksUpAreCalledThat() async throws {
      let file = try scratch.file("clip.mov", 1000)
      let mark = scratch.newPath("mark")
      let push = try Command.fullbore(
        "push", "--timeout", "1s", "--retries", "0", file, "put+http://media.example/", in: scratch,
        environment: try Shim.environment(.silentResolver(mark: mark), in: scratch))
      #expect(try await push.wait() == .exited(3))
      #expect(push.errors.contains("no address for media.example within 1.0 seconds"), "\(push.errors)")
      #expect(push.errors.contains("Is the name right, and this machine online?"), "\(push.errors)")
    }

    @Test(.needs(.nginx), arguments: ["http", "socks5h"]) func proxyCarriesAPushItCannotRead(_ kind: String)
      async throws
    {
      let certificate = try await TestCertificate.selfSigned(for: "DNS:media.example", in: scratch)
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(into: folder.path, secure: certificate, in: scratch)
      let proxy = ProxyPeer(
        to: try #require(URL(string: server.url)?.port), .wants(user: "me", password: "secret-word"))
      let place = scratch.path("proxy")
      try "\(kind)://me:secret-word@127.0.0.1:\(proxy.port)".write(toFile: place, atomically: true, encoding: .utf8)
      try scratch.file("gallery/video.mov", 20 << 20)
      let (end, push) = try await fullbore(
        "push", "--cacert", certificate.path, "--proxy", "@" + place, scratch.path("gallery/"),
        "https://media.example/", in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: folder)
      #expect(Set(proxy.seen.targets) == ["media.example:443"])
    }

    @Test(.needs(.nginx)) func redirectIsFollowedWithTheFileSentAgain() async throws {
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(
        into: folder.path, rules: "location ~ ^/moved/(.*)$ { return 307 /kept/$1; }", in: scratch)
      for (name, size) in [("small.jpg", 1000), ("large.mov", 20 << 20)] { try scratch.file("gallery/\(name)", size) }
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "put+\(server.url)/moved/", in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: Folder(folder.path + "/kept"))
    }

    /// nginx closes the connection for two names without a response.
    @Test(.needs(.nginx)) func filesThatRunOutOfRetriesStopNoOther() async throws {
      let folder = Folder(try scratch.folder("received"))
      let server = try await PeerServer.nginx(
        into: folder.path, rules: "location ~ /IMG_[37].jpg$ { if ($request_method = PUT) { return 444; } }",
        in: scratch)
      for number in 0..<40 { try scratch.file("gallery/IMG_\(number).jpg", 100_000 + number) }
      let (end, push) = try await fullbore(
        "push", "--retries", "1", scratch.path("gallery/"), server.url + "/", in: scratch)
      #expect(end == .exited(1))
      #expect(folder.files().count == 38)
      #expect(push.errors.contains("IMG_3.jpg: PUT") && push.errors.contains("IMG_7.jpg: PUT"), "\(push.errors)")
    }

    /// The second file, and the next run, start with the part size that was accepted for the first file.
    @Test(.needs(.nginx), arguments: ["tus", "resumable"]) func partsShrinkToWhatAProxyTakes(_ uploadProtocol: String)
      async throws
    {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await PeerServer.nginx(
        into: try scratch.folder("unused"),
        rules: """
          client_max_body_size 1m;
          location ~ ^/ {
            proxy_pass http://127.0.0.1:\(server.port);
            proxy_set_header Host 127.0.0.1:\(server.port);
            proxy_http_version 1.1;
          }
          """, in: scratch)
      try scratch.file("gallery/video.mov", 20 << 20)
      try scratch.file("gallery/photo.jpg", 3 << 20)
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "\(uploadProtocol)+\(proxy.url)/", in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      let refused = proxy.command.errors.components(separatedBy: "too large body").count
      #expect(refused > 1, "nginx let everything through: \(proxy.command.errors)")

      try scratch.file("gallery/later.mov", 20 << 20)
      let (again, later) = try await fullbore(
        "push", scratch.path("gallery/"), "\(uploadProtocol)+\(proxy.url)/", in: scratch)
      #expect(again == .exited(0), "\(later.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(proxy.command.errors.components(separatedBy: "too large body").count == refused)
    }

    /// The proxy removes the path prefix under which it publishes the server. It does not tell the server, and sends
    /// its own `Host`.
    @Test(.needs(.nginx), arguments: ["tus", "resumable"]) func aServerBelowAPathOfAProxyTakesFilesOfAnySize(
      _ uploadProtocol: String
    ) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await PeerServer.nginx(
        into: try scratch.folder("unused"),
        rules: "location /photos/ { proxy_pass http://127.0.0.1:\(server.port)/; }", in: scratch)
      try scratch.file("gallery/trip/video.mov", 20 << 20)
      try scratch.file("gallery/photo.jpg", 5000)
      for (number, atOnce) in ["1", "4"].enumerated() {
        let arguments = [
          "--retries", "0", "--parts-at-once", atOnce, scratch.path("gallery/"),
          "\(uploadProtocol)+\(proxy.url)/photos/\(number)/a/",
        ]
        let push = try Command(Tool.fullbore, ["push"] + arguments, in: scratch)
        #expect(try await push.wait() == .exited(0), "\(push.errors)")
        Folder(scratch.path("gallery")).expectSame(as: Folder(server.folder.path + "/\(number)/a"))
        let check = try Command(Tool.fullbore, ["push", "--check"] + arguments, in: scratch)
        #expect(try await check.wait() == .exited(0), "\(check.errors)")
        #expect((check.output + check.errors).contains("0 files sent"), "\(check.output)\(check.errors)")
      }
    }

    /// PATCH and DELETE are sent as POST, for uploads in one piece and in parts.
    @Test(.needs(.nginx), arguments: [405, 403]) func aProxyThatTakesNoPatchIsPassed(_ status: Int) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await PeerServer.nginx(
        into: try scratch.folder("unused"),
        rules: """
          client_max_body_size 0;
          location ~ ^/ {
            if ($request_method ~ "PATCH|DELETE") { return \(status); }
            proxy_pass http://127.0.0.1:\(server.port);
            proxy_set_header Host 127.0.0.1:\(server.port);
            proxy_http_version 1.1;
            proxy_request_buffering off;
          }
          """, in: scratch)
      try scratch.file("gallery/video.mov", 20 << 20)
      try scratch.file("gallery/photo.jpg", 3 << 20)
      for atOnce in ["1", "4"] {
        let (end, push) = try await fullbore(
          "push", "--retries", "0", "--parts-at-once", atOnce, scratch.path("gallery/"),
          "tus+\(proxy.url)/by-\(atOnce)/",
          in: scratch)
        #expect(end == .exited(0), "\(push.errors)")
        Folder(scratch.path("gallery")).expectSame(as: Folder(server.folder.path + "/by-\(atOnce)"))
      }
      #expect(server.folder.unfinished() == 0, "parts are deleted too")
    }

    /// nginx (seen with 1.22) takes an interim response for the final one, and then waits for the end of the connection. By
    /// default it announces that it will close it. In the other cases it says at most that it is a proxy.
    @Test(
      .needs(.nginx),
      arguments: [
        "", "proxy_set_header Connection '';",
        "proxy_set_header Connection ''; proxy_set_header X-Forwarded-For $remote_addr;",
      ])
    func aPipeGoesThroughAProxyThatKnowsNoInterimResponses(_ fields: String) async throws {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await PeerServer.nginx(
        into: try scratch.folder("unused"),
        rules: """
          location ~ ^/ {
            proxy_pass http://127.0.0.1:\(server.port);
            proxy_set_header Host 127.0.0.1:\(server.port);
            \(fields)
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_read_timeout 4s;
          }
          """, in: scratch)
      let file = try scratch.file("gallery/dump.sql", 90 << 20)
      let push = try Command(
        "/bin/sh", ["-c", "cat \"$1\" | \"$0\" push - \"$2/dump.sql\"", Tool.fullbore, file, proxy.url], in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.errors)")
      try scratch.file("gallery/photo.jpg", 3 << 20)
      let (end, second) = try await fullbore(
        "push", scratch.path("gallery/photo.jpg"), "resumable+\(proxy.url)/", in: scratch)
      #expect(end == .exited(0), "\(second.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
      #expect(!proxy.command.errors.contains("upstream timed out"), "\(proxy.command.errors)")
    }

    @Test(arguments: ["put", "tus"]) func serverIsReachedOverIPv6(_ uploadProtocol: String) async throws {
      let server = try await ServeProcess.start(in: scratch, address: "[::1]")
      #expect(server.url.hasPrefix("http://[::1]:"))
      try scratch.file("gallery/video.mov", 5 << 20)
      let (end, push) = try await fullbore(
        "push", scratch.path("gallery/"), "\(uploadProtocol)+\(server.url)", in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }
  }
}
