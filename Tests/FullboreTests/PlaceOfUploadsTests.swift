import BlobHTTP
import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

/// Which place the uploads of an earlier push belong to, and what later commands take from it.
@Suite struct PlaceOfUploadsTests {
  private let scratch = Scratch()

  private func places(_ text: String) throws -> Places { try Places("/c/config.toml", Array(text.utf8)) }

  private func kept(_ endpoint: String, by name: String? = nil) -> JournalDestination {
    var kept = JournalDestination(endpoint: endpoint, protocolName: "tus")
    kept.placeName = name
    return kept
  }

  private func token(_ name: BytePath) -> BytePath { scratch.file(name, name.bytes) }

  @Test func thePlaceOfThePushIsUsedIfTwoHaveItsURL() throws {
    let places = try places(
      """
      [places.anna]
      url = "tus+http://nas/in/"
      token-file = "\(token("anna"))"
      account = "anna"
      [places.bob]
      url = "tus+http://nas/in"
      token-file = "\(token("bob"))"
      account = "bob"
      """)
    for name in ["anna", "bob"] {
      let connection = try ConnectionOptions().completed(from: kept("http://nas/in/", by: name), places)
      #expect(connection.tokenFile == scratch.path.appending(BytePath(name)))
      #expect(connection.placeName == name && connection.account == name)
    }
    let refusal = #expect(throws: UploadError.self) {
      try ConnectionOptions().completed(from: kept("http://nas/in/"), places)
    }
    #expect(refusal?.message.contains("the places 'anna' and 'bob'") == true, "\(refusal?.message ?? "")")
    #expect(refusal?.message.contains("give the credentials with --token-file") == true)
  }

  @Test func thePlaceOfThePushIsTakenEvenIfAnotherIsNearer() throws {
    let places = try places(
      """
      [places.outer]
      url = "http://nas/%70hoto/"
      [places.inner]
      url = "http://nas/photo/in/"
      """)
    #expect(try places.place(of: kept("http://nas/photo/in/", by: "outer"))?.name == "outer")
    #expect(try places.place(of: kept("http://nas/photo/in/", by: "inner"))?.name == "inner")
    // The length is that of the path without needless percent-encoding.
    #expect(try places.place(of: kept("http://nas/photo/in/"))?.name == "inner")
    // Neither the place that is elsewhere now, nor one that was removed, is replaced by another one.
    for (url, name) in [("http://nas/photo/", "inner"), ("http://nas/photo/in/", "gone")] {
      #expect(try places.place(of: kept(url, by: name)) == nil)
      let refusal = #expect(throws: UploadError.self) {
        try ConnectionOptions().completed(from: kept(url, by: name), places)
      }
      #expect(
        refusal?.message.contains("those of the place '\(name)'") == true,
        "\(refusal?.message ?? "")")
    }
  }

  @Test func aPlaceThatTheCommandNamesDoesNotGiveItsCredentialsToUploadsOfAnother() throws {
    let places = try places(
      """
      [places.outer]
      url = "http://nas/photo/"
      token-file = "\(token("outer"))"
      insecure = true
      [places.inner]
      url = "http://nas/photo/in/"
      token-file = "\(token("inner"))"
      """)
    let named = try ConnectionOptions(places.named("outer"))
    let connection = try named.completed(from: kept("http://nas/photo/in/", by: "inner"), places)
    #expect(connection.tokenFile == scratch.path.appending("inner") && !connection.isInsecure)
  }

  @Test func credentialsOfAPlaceDoNotGoOverAConnectionThatWasGivenWithoutThem() throws {
    let certificates = token("ca")
    let text = "[places.nas]\nurl = \"https://nas/\"\ntoken-file = \"\(token("anna"))\"\n"
    var kept = kept("https://nas/in/")
    (kept.insecure, kept.proxy, kept.caFile) = (true, "http://proxy:1", "/other.pem")
    let plain = try ConnectionOptions().completed(from: kept, places(text))
    #expect(plain.tokenFile == scratch.path.appending("anna"))
    #expect(!plain.isInsecure && plain.proxy == nil && plain.certificates == nil)
    let own = try ConnectionOptions().completed(from: kept, places(text + "cacert = \"\(certificates)\"\n"))
    #expect(own.certificates == certificates && !own.isInsecure)
    var now = ConnectionOptions()
    now.isInsecure = true
    #expect(try now.completed(from: kept, places(text)).isInsecure)
    // Without credentials of a place, the connection is as it was.
    let without = try ConnectionOptions().completed(from: kept, places("[places.nas]\nurl = \"https://nas/\"\n"))
    #expect(without.isInsecure && without.certificates == "/other.pem")
  }

  @Test func uploadsToS3HaveTheFieldsOfTheirPlace() throws {
    let header = scratch.file("h", Array("X-Secret: x".utf8))
    let text =
      "[places.arch]\nurl = \"s3://bucket/p/\"\nendpoint = \"http://s3.example:9000\"\nheader = \"@\(header)\"\n"
    func kept(_ prefix: String, endpoint: String = "http://s3.example:9000", by name: String? = "arch")
      -> JournalDestination
    {
      let address = S3Address(bucket: "bucket", endpoint: endpoint)
      var kept = JournalDestination(
        endpoint: "\(endpoint)/bucket/\(prefix)", protocolName: "s3", s3: S3Location(address))
      kept.placeName = name
      return kept
    }
    for destination in [kept("p/"), kept("p/2026/"), kept("p/", by: nil)] {
      #expect(try ConnectionOptions().completed(from: destination, places(text)).headers == [.file(header)])
    }
    for destination in [kept("q/"), kept("p/", endpoint: "http://other:9000")] {
      let refusal = #expect(throws: UploadError.self) {
        try ConnectionOptions().completed(from: destination, places(text))
      }
      #expect(refusal?.message.contains("those of the place 'arch'") == true, "\(refusal?.message ?? "")")
    }
    var elsewhere = ConnectionOptions()
    elsewhere.s3.endpoint = "http://other:9000"
    #expect(try elsewhere.completed(from: kept("p/"), places(text)).headers.isEmpty)
  }

  @Test func anotherEndpointGetsNothingOfThePlace() throws {
    let file = token("h")
    let text =
      "[places.arch]\nurl = \"s3://bucket/p/\"\nendpoint = \"http://s3:9000\"\nheader = \"@\(file)\"\nprofile = \"p\"\n"
      + "cacert = \"\(file)\"\ninsecure = true\nproxy = \"@\(file)\"\nregion = \"eu-west-1\"\n"
    let place = try places(text).named("arch")
    func used(_ endpoint: BytePath) throws -> Arguments {
      var arguments = try Arguments(["a", "arch:", "--endpoint", endpoint], PushCommand.declaration)
      arguments.use(place, as: "s3://bucket/p/")
      return arguments
    }
    let other = try used("http://other:9000")
    for name in ["header", "profile", "cacert", "insecure", "proxy"] { #expect(!other.isGiven(name), "\(name)") }
    #expect(other.isGiven("region") && other.placeOfCredentials == nil)
    let notice = "which gets nothing of its cacert, header, insecure, profile, proxy"
    #expect(other.notices.first?.hasSuffix(notice) == true, "\(other.notices)")
    let own = try used("http://s3:9000")
    #expect(own.isGiven("header") && own.isGiven("profile") && own.notices.isEmpty)
  }

  @Test(arguments: [
    ("token-file = \"a\"", "token-file = \"b\"", true), ("token-command = \"a\"", "", true),
    ("token-file = \"a\"", "token-file = \"a\"", false), ("", "", false),
    ("token-file = \"a\"\naccount = \"anna\"", "token-file = \"b\"\naccount = \"bob\"", false),
    ("token-file = \"a\"\naccount = \"anna\"", "token-file = \"b\"", true),
    ("user = \"anna\"\npassword-command = \"a\"", "user = \"bob\"\npassword-command = \"b\"", false),
  ])
  func accountsAtOneURLHaveNames(_ first: String, _ second: String, _ isRefused: Bool) throws {
    let text =
      "[places.a]\nurl = \"http://nas/in\"\n\(first)\n[places.b]\nurl = \"tus+http://NAS:80/%69n/\"\n\(second)\n"
    do throws(UsageError) {
      _ = try Places("/c/config.toml", Array(text.utf8))
      #expect(!isRefused)
    } catch {
      let line = 4 + first.split(separator: "\n", omittingEmptySubsequences: false).count
      #expect(
        isRefused && error.message.hasPrefix("/c/config.toml:\(line):7: the places 'a' and 'b'"), "\(error.message)")
      #expect(error.message.contains("account = \"NAME\""))
    }
  }

  @Test func anAccountIsPartOfTheDestination() throws {
    func account(_ name: String?) throws -> String? {
      var destination = UploadDestination(
        endpoint: try #require(HTTPURL("http://nas/")), uploadProtocol: PlainPut(), limits: PartLimits())
      destination.account = name
      #expect(UploadDestination.account(of: [:], named: name) == destination.journaledAccount)
      return ConnectionOptions().journaled(destination, overwrite: false).account
    }
    #expect(try account("anna") != account("bob") && account(nil) == "")
  }

  @Test func aFolderThatOthersCanWriteIsNotUsed() throws {
    let file = scratch.file("own/config.toml", Array("[places.nas]\nurl = \"http://nas/\"\n".utf8))
    let folder = scratch.path.appending("own")
    scratch.folder("linked")
    scratch.link("linked/config.toml", to: file)
    let link = scratch.path.appending("linked/config.toml")
    func refusal(_ path: BytePath) -> String? { usageError { () throws(UsageError) in _ = try Places.load(path) } }
    for mode: mode_t in [0o775, 0o757] {
      _ = folder.withCString { chmod($0, mode) }
      #expect(refusal(file)?.contains("chmod go-w \(folder)") == true, "\(refusal(file) ?? "used")")
      #expect(refusal(link)?.contains("chmod go-w \(folder)") == true, "\(refusal(link) ?? "used")")
    }
    for mode: mode_t in [0o1777, 0o755] {
      _ = folder.withCString { chmod($0, mode) }
      #expect(refusal(file) == nil && refusal(link) == nil)
    }
    _ = scratch.path.appending("linked").withCString { chmod($0, 0o777) }
    #expect(refusal(link)?.contains("chmod go-w") == true)
    guard geteuid() == 0 else { return }
    _ = folder.withCString { chown($0, 1234, 0) }
    #expect(refusal(file)?.contains("its folder belongs to another user") == true, "\(refusal(file) ?? "used")")
    _ = folder.withCString { chown($0, 0, 0) }
    _ = file.withCString { chown($0, 1234, 0) }
    #expect(refusal(file)?.contains("belongs to another user") == true, "\(refusal(file) ?? "used")")
  }

  @Test(arguments: [
    "echo TOKEN; exec >&-; sleep 600", "trap '' TERM; echo TOKEN; sleep 600", "sleep 600 & echo TOKEN; wait",
  ])
  func aCommandThatDoesNotEndIsEndedWithAllThatItStarted(_ text: String) throws {
    let pid = scratch.path.appending("pid")
    let command = SecretCommand(text: BytePath("printf %s $$ > \(pid); \(text)"), setting: "token-command")
    let refusal = usageError { () throws(UsageError) in _ = try command.output(patience: .seconds(1)) }
    #expect(refusal?.contains("not ended within") == true && refusal?.contains("TOKEN") == false, "\(refusal ?? "")")
    let group = try #require(pid_t(String(decoding: scratch.content(of: "pid"), as: UTF8.self)))
    // Process 1 waits for the processes that the shell has started.
    var isThere = true
    for _ in 0..<500 where isThere {
      isThere = kill(-group, 0) == 0
      if isThere { usleep(10_000) }
    }
    #expect(!isThere)
  }

  @Test func aProgramThatTheCommandLeavesBehindIsNotWaitedFor() throws {
    let pid = scratch.path.appending("pid")
    let command = SecretCommand(
      text: BytePath("echo TOKEN; sleep 600 & printf %s $! > \(pid)"), setting: "token-command")
    #expect(try command.output() == "TOKEN")
    let left = try #require(pid_t(String(decoding: scratch.content(of: "pid"), as: UTF8.self)))
    #expect(kill(left, SIGKILL) == 0)
  }
}
