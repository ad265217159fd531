import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

/// Tests the sources of credentials, and that credentials are not shown.
@Suite struct CredentialTests {
  private let scratch = Scratch()

  private func options(_ arguments: BytePath...) throws(UsageError) -> PushOptions {
    try PushOptions(try Arguments(arguments + ["a", "https://media.example/in/"], PushCommand.declaration))
  }

  private func refusal(_ arguments: BytePath...) -> String? {
    usageError { () throws(UsageError) in
      _ = try PushOptions(
        try Arguments(arguments + ["a", "https://media.example/in/"], PushCommand.declaration))
    }
  }

  /// A pipe would keep the first request waiting for whoever writes into it.
  @Test func certificatesComeFromAFile() {
    let pipe = scratch.path.appending("pipe")
    #expect(pipe.withCString { mkfifo($0, 0o600) } == 0)
    #expect(refusal("--cacert", pipe)?.contains("no regular file") == true)
    #expect(refusal("--cacert", scratch.file("ca.pem")) == nil)
    #expect(refusal("--cacert", scratch.path.appending("none"))?.contains("--cacert") == true)
  }

  @Test(arguments: [
    ("machine media.example login me password secret", "me", "secret"),
    ("machine other login x password y\nmachine MEDIA.example\n  login me\n\tpassword s#cret\n", "me", "s#cret"),
    ("# machine media.example login no password no\nmachine media.example login me password x", "me", "x"),
    ("default login any password body", "any", "body"),
    ("machine media.example login \"m e\" password \"a\\\"b\\\\c\"", "m e", "a\"b\\c"),
    ("macdef init\nmachine media.example login no password no\n\nmachine media.example login me password x", "me", "x"),
    ("machine media.example account a login me password login\nmachine z login q", "me", "login"),
    ("machine media.example password x", "", "x"), ("machine media.example login", "", ""),
  ])
  func netrcIsReadAsFtpDoes(_ text: String, _ user: String, _ password: String) {
    #expect(Netrc(text).login(for: "media.example") == Netrc.Login(user: user, password: password))
  }

  @Test(arguments: ["", "machine other login a password b", "machine", "login a password b", "nonsense \u{0}"])
  func aHostThatIsNotInANetrcHasNoLogin(_ text: String) { #expect(Netrc(text).login(for: "media.example") == nil) }

  @Test func netrcGivesTheCredentialOfTheDestination() throws {
    let netrc = scratch.file("netrc", Array("machine media.example login me password se:cret".utf8))
    let one = try options("--netrc-file", netrc)
    let endpoint = one.destination.endpoint
    #expect(try one.connection.requestHeaders(for: endpoint)["Authorization"] == "Basic bWU6c2U6Y3JldA==")
    let token = scratch.file("token", Array("abc".utf8))
    let both = try options("--netrc-file", netrc, "--token-file", token)
    #expect(try both.connection.requestHeaders(for: endpoint)["Authorization"] == "Bearer abc")
  }

  /// The token in the file is renewed as soon as the old one was refused: by `push`, and by what goes on with an earlier one.
  @Test(arguments: [false, true]) func aTokenIsReadAgainWhenItIsRefused(_ isKept: Bool) async throws {
    let token = scratch.file("token", Array("first-token".utf8))
    let peer = HTTPPeer { [scratch] request in
      if request.headers["Authorization"] == "Bearer second-token" { return .init(200, ["Tus-Version": "1.0.0"]) }
      _ = scratch.file("token", Array("second-token".utf8))
      return .init(401)
    }
    defer { peer.stop() }
    let arguments = try Arguments(
      ["--token-file", token, "a", BytePath("tus+\(peer.url.text)")], PushCommand.declaration)
    let options = try PushOptions(arguments)
    let transport = SocketTransport(.init(connections: 1))
    let kept = JournalDestination(endpoint: peer.url.text, protocolName: "tus")
    let reached =
      isKept
      ? try await Reached(kept, options.connection, over: transport)
      : try await Reached(options.destination, options.connection, checksum: nil, over: transport)
    #expect(reached.destination.uploadProtocol is Tus)
    #expect(peer.requests.count == 2, "\(peer.requests)")
  }

  @Test func aNetrcThatSaysNothingOfTheHostIsRefused() throws {
    let netrc = scratch.file("netrc", Array("machine other.example login me password secret".utf8))
    let words = refusal("--netrc-file", netrc)
    #expect(words?.hasSuffix("has no entry for the machine media.example") == true, "\(words ?? "")")
    #expect(words?.contains("secret") == false)
    #expect(refusal("--netrc-file", "/nonexistent")?.contains("No such file") == true)
  }

  @Test func aProxysPasswordComesFromAFile() throws {
    let file = scratch.file("proxy", Array("socks5h://me:secret@proxy.example:9050\n".utf8))
    let connection = try options("--proxy", BytePath(Array("@".utf8) + file.bytes)).connection
    #expect(connection.proxy == .file(file))
    let proxy = try #require(try connection.readProxy())
    #expect(proxy.hasCredentials && "\(proxy)" == "socks5h://proxy.example:9050")
    #expect(!"\(connection)".contains("secret"))
  }

  @Test(arguments: [
    ("http://me:secret@proxy:1", "--proxy @FILE"), ("http://secret@proxy:1", "--proxy @FILE"),
    ("ftp://me:secret@proxy:1", "wanted http://host:port"), ("http://me:secret@proxy:x", "wanted http://host:port"),
  ])
  func aPasswordOnTheCommandLineIsRefused(_ text: String, _ words: String) {
    let refusal = refusal("--proxy", BytePath(text))
    #expect(refusal?.contains(words) == true && refusal?.contains("secret") == false, "\(refusal ?? "")")
  }

  @Test func aProxyFileWithoutAProxyIsRefusedAndNotShown() {
    let file = scratch.file("proxy", Array("secret\nsecret".utf8))
    let refusal = refusal("--proxy", BytePath(Array("@".utf8) + file.bytes))
    #expect(refusal?.contains("wanted one line") == true && refusal?.contains("secret") == false)
  }

  @Test func aPasswordThatStandsInASourceIsNotShown() {
    let refusal = usageError { () throws(UsageError) in
      _ = try PushOptions(try Arguments(["https://u:secret@host/", "a"], PushCommand.declaration))
    }
    #expect(refusal?.contains("secret") == false, "\(refusal ?? "taken")")
  }

  /// The journal's text for a connection is parsed back to the same options.
  @Test func theJournalKeepsWhereSecretsAreAndNotWhatTheyAre() throws {
    let token = scratch.file("token", Array("secret".utf8))
    let netrc = scratch.file("netrc", Array("default login me password secret".utf8))
    let field = scratch.file("field", Array("X-Api-Key: secret".utf8))
    let proxy = scratch.file("proxy", Array("http://me:secret@proxy:1".utf8))
    func at(_ path: BytePath) -> BytePath { BytePath(Array("@".utf8) + path.bytes) }
    let given = try options(
      "--token-file", token, "--netrc-file", netrc, "--header", at(field), "--header", "X-Other: secret", "--proxy",
      at(proxy)
    ).connection
    let destination = UploadDestination(
      endpoint: HTTPURL("https://media.example/")!, uploadProtocol: PlainPut(), limits: PartLimits())
    let kept = given.journaled(destination, overwrite: false)
    #expect(!"\(kept)".contains("secret"))
    let again = try ConnectionOptions().completed(from: kept)
    #expect(again.tokenFile == token && again.netrcFile == netrc && again.headers == [.file(field)])
    #expect(again.proxy == .file(proxy))
    let plain = try options("--proxy", "socks5://proxy:1").connection
    let journaled = plain.journaled(destination, overwrite: false)
    #expect(try ConnectionOptions().completed(from: journaled).proxy == plain.proxy)
  }
}
