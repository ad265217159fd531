import BlobHTTP
import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

/// Places in `config.toml`: what is accepted there, the URLs that they stand for, and whose credentials they have.
@Suite struct PlacesTests {
  private let scratch = Scratch()

  private func places(_ text: String) throws(UsageError) -> [Place] {
    try PlacesReader("/c/config.toml", Array(text.utf8)).places()
  }

  private func place(_ lines: String, url: String = "http://nas:8080/photos/") throws -> Place {
    try #require(try places("[places.nas]\nurl = \"\(url)\"\n\(lines)").first)
  }

  private func refusal(_ lines: String) -> String? {
    usageError { () throws(UsageError) in _ = try places("[places.nas]\nurl = \"http://nas/\"\n\(lines)\n") }
  }

  @Test(arguments: [
    ("tokenfile = \"x\"", "/c/config.toml:3:1: there is no setting 'tokenfile'. Did you mean 'token-file'?"),
    ("token = \"hunter2\"", "/c/config.toml:3:1: 'token': no secret is written here: token-file = \"FILE\""),
    ("password = \"hunter2\"", "/c/config.toml:3:1: 'password': no secret is written here"),
    ("header = \"X-Key: hunter2\"", "/c/config.toml:3:10: header: it may be a secret, and none is written here"),
    ("form = [\"key=hunter2\"]", "/c/config.toml:3:8: form: it may be a secret, and none is written here"),
    ("overwrite = true", "/c/config.toml:3:1: 'overwrite' is for one push, and not for a place"),
    ("mhl = true", "/c/config.toml:3:1: 'mhl' is for one push, and not for a place"),
    ("seal = \"age1misspelt\"", "/c/config.toml:3:8: seal: no public key of age"),
    ("verify = \"yes\"", "/c/config.toml:3:10: verify: wanted true or false"),
    ("jobs = true", "/c/config.toml:3:8: jobs: wanted text in quotes, or a number"),
    ("jobs = [1, 2]", "/c/config.toml:3:8: jobs: wanted one value, and no array"),
    ("jobs = ", "/c/config.toml:3:8: wanted text in quotes"),
    ("layout = \"a\\u0000b\"", "/c/config.toml:3:10: layout: a control character in the text"),
    ("user = \"anna\"", "/c/config.toml:3:1: user: the password is wanted too: password-command"),
    ("password-command = \"x\"", "/c/config.toml:3:1: password-command: user is wanted too"),
    ("token-file = \"t\"\nnetrc = true", "/c/config.toml:4:1: netrc: there is token-file too: which of the two?"),
    ("hunter2", "/c/config.toml:3:8: wanted '=' and a value after the name of a setting"),
    ("proxy = \"http://u:hunter2@h:1\"", "/c/config.toml:3:9: proxy: no password is written here"),
    ("proxy = \"ftp://h:1\"", "/c/config.toml:3:9: proxy: wanted http://host:port"),
    ("jobs = 9999", "/c/config.toml:3:8: jobs '9999': wanted a number from 1 to 256"),
    ("jobs = -9223372036854775808", "/c/config.toml:3:8: jobs '-9223372036854775808': wanted a number"),
    ("verify = true\npart-size = 3", "/c/config.toml:4:13: part-size '3': wanted a size of at least 1K"),
    ("settle = \"soon\"", "/c/config.toml:3:10: settle 'soon': wanted a duration"),
    ("exclude = [\"[\"]", "/c/config.toml:3:11: exclude '['"),
    ("user = \"anna:hunter2\"\npassword-command = \"x\"", "/c/config.toml:3:1: user: a colon would end the name"),
    ("[place.b]", "/c/config.toml:3:1: there is no table [place.b]: a place begins with [places.NAME]"),
    ("[places.http]\nurl = \"http://x/\"", "'http:' begins a URL"),
    ("[places.\"a b\"]", "a place is called by letters"),
    ("[places.b]", "the place 'b' has no url"), ("[places.b]\nurl = 7", ":4:7: url: wanted text in quotes"),
    ("[places.b]\nurl = \"nas\"", "url: wanted http://host/path/"),
    ("[places.b]\nurl = \"https://a:hunter2@nas/\"", "user and password in the URL"),
    ("[places.b]\nurl = \"https://nas/?sig=hunter2\"", "the query of a URL may be a secret"),
    ("[places.b]\nurl = \"ftp://nas/\"", "the scheme 'ftp' is none we speak"),
    ("[places]\nx = 1", ":4:1: 'x' belongs to no place"),
  ])
  func theErrorOfAConfigurationNamesTheLine(_ lines: String, _ message: String) throws {
    let text = try #require(refusal(lines))
    #expect(text.contains(message), "\(text)")
    #expect(!text.contains("hunter2"), "\(text)")
  }

  @Test(arguments: [
    ("http://nas:8080/photos/", "2026/", "http://nas:8080/photos/2026/"),
    ("http://nas:8080/photos", "2026/a", "http://nas:8080/photos/2026/a"),
    ("http://nas/photos", "", "http://nas/photos/"),
    ("dav+https://cloud/anna/", "Ferien #1, 100%?/é/", "dav+https://cloud/anna/Ferien%20%231%2C%20100%25%3F/%C3%A9/"),
    ("s3://bucket", "a b/#/", "s3://bucket/a b/#/"), ("gs://bucket/in", "a b", "gs://bucket/in/a%20b"),
    ("tus+http://nas/files", "", "tus+http://nas/files"), ("form+http://nas/post", "", "form+http://nas/post"),
    ("put+http://nas/in", "", "put+http://nas/in/"),
  ])
  func aPathIsAppendedToTheURL(_ url: String, _ path: String, _ result: String) throws {
    #expect(try place("", url: url).destination(of: BytePath(path)) == BytePath(result))
  }

  @Test(arguments: ["../other/", "a/../../b", "./a", "/a", ".."]) func aPathDoesNotLeaveThePlace(_ path: String) throws
  {
    let place = try place("")
    #expect(usageError { () throws(UsageError) in _ = try place.destination(of: BytePath(path)) } != nil)
  }

  @Test func aFormHasNoFoldersBelowIt() throws {
    let form = try place("", url: "form+http://nas/post/")
    #expect(
      usageError { () throws(UsageError) in _ = try form.destination(of: "a") }?.contains("write 'nas:'") == true)
  }

  private func options(_ place: Place, _ arguments: BytePath...) throws -> PushOptions {
    var arguments = try Arguments(arguments + ["a", "nas:"], PushCommand.declaration)
    arguments.use(place, as: try place.destination(of: ""))
    return try PushOptions(arguments)
  }

  @Test func theCommandLineWinsOverThePlace() throws {
    let place = try place(
      "jobs = 3\nbwlimit = \"2M\"\nverify = true\ncheck = false\ninclude = [\"*.JPG\", \"*.MOV\"]\n")
    let plain = try options(place)
    #expect(plain.pace.jobs == 3 && plain.pace.bytesPerSecond == 2 << 20 && plain.verifies && !plain.checks)
    #expect(plain.destination.endpoint.text == "http://nas:8080/photos/")
    let given = try options(place, "-j", "5", "--include", "*.PNG")
    #expect(given.pace.jobs == 5 && given.pace.bytesPerSecond == 2 << 20)
  }

  @Test func aPlaceThatSealsSaysSo() throws {
    #expect(try place("seal-recipients-file = \"r\"").seals && !(try place("verify = true").seals))
  }

  /// A file that is away concerns only those who use the place.
  @Test func aMissingFileIsNamedOnlyWhenThePlaceIsUsed() throws {
    let place = try place("form = \"@/none\"")
    let refusal = #expect(throws: UsageError.self) { try options(place) }
    #expect(refusal?.message.contains("/none") == true, "\(refusal?.message ?? "")")
    let missing = try self.place("token-file = \"/none\"")
    let located = #expect(throws: UsageError.self) { try options(missing) }
    #expect(located?.message.hasPrefix("/c/config.toml:3:14: token-file: ") == true, "\(located?.message ?? "")")
  }

  @Test func credentialsAreTakenTogether() throws {
    let (mine, other) = (scratch.file("mine", Array("mine".utf8)), scratch.file("other", Array("other".utf8)))
    let place = try place("token-file = \"\(mine)\"\ncacert = \"\(mine)\"")
    let plain = try options(place).connection
    #expect(plain.tokenFile == mine && plain.placeName == "nas" && plain.certificates == mine)
    let given = try options(place, "--header", BytePath("@").appendingBytes(of: scratch.file("h", Array("X: y".utf8))))
    #expect(given.connection.tokenFile == nil && given.connection.placeName == nil)
    #expect(try options(place, "--token-file", other).connection.tokenFile == other)
  }

  @Test func filesAreRelativeToTheFolderOfTheirFile() throws {
    let place = try place("token-file = \"nas.token\"\nheader = \"@h\"\nlayout = \"{name}\"")
    #expect(place.values["token-file"] == ["/c/nas.token"] && place.values["header"] == ["@/c/h"])
    #expect(place.values["layout"] == ["{name}"])
  }

  @Test func aCommandPrintsTheSecretOnceAndAgainAfterARefusal() throws {
    let count = scratch.path.appending("count")
    let place = try place("token-command = 'echo x >> \(count); echo token-$(wc -l < \(count))'")
    let connection = try options(place).connection
    let url = try #require(HTTPURL("http://nas:8080/photos/"))
    #expect(try connection.requestHeaders(for: url)["Authorization"] == "Bearer token-1")
    #expect(try connection.requestHeaders(for: nil).fields.count == 0)
    #expect(connection.rereading(for: url)?()?["Authorization"] == "Bearer token-2")
    #expect(
      try options(self.place("user = \"anna\"\npassword-command = 'echo \"se cret\"'")).connection
        .requestHeaders(for: url)["Authorization"] == Netrc.Login(user: "anna", password: "se cret").basic)
  }

  @Test(arguments: [
    "echo hunter2; exit 3", "printf 'hunter2\\nhunter2\\n'", "true", "kill -9 $$", "echo hunter2 x",
    "printf 'hunter2\\377'", "printf 'hunter2\\001x'",
  ])
  func theErrorOfAFailedCommandDoesNotShowItsOutput(_ command: String) throws {
    let place = try place("token-command = \(PlaceText.quoted(command))")
    let refusal = try #require(#expect(throws: UsageError.self) { try options(place) })
    #expect(refusal.message.hasPrefix("token-command: ") && !refusal.message.contains("hunter2"), "\(refusal.message)")
  }

  @Test func credentialsBelongToTheirOriginAndPath() throws {
    let all = try places(
      """
      [places.nas]
      url = "http://nas:8080/photos/"
      [places.films]
      url = "dav+http://NAS:8080/photos/films"
      [places.bucket]
      url = "s3://bucket/"
      """)
    let places = Places(file: "/c/config.toml", all: all)
    func owner(_ url: String) -> String? {
      (try? places.place(of: JournalDestination(endpoint: url, protocolName: "put")))?.name
    }
    #expect(owner("http://nas:8080/photos/2026/") == "nas" && owner("http://nas:8080/photos/films/a") == "films")
    #expect(owner("http://nas:8080/photos/filmsX") == "nas" && owner("http://nas:8080/photos/x/../../y") == nil)
    #expect(owner("https://nas:8080/photos/") == nil && owner("http://nas/photos/") == nil)
    #expect(owner("http://nas:8080/photosX/") == nil && owner("http://nas.example:8080/photos/") == nil)
  }

  @Test func theNearestPlaceIsSuggested() throws {
    let places = Places(file: "/c/config.toml", all: [try place("")])
    for name in ["nsa", "NAS"] {
      let message = usageError { () throws(UsageError) in _ = try places.named(name) }
      #expect(
        message?.contains("there is no place called '\(name)'. Did you mean 'nas:'?") == true, "\(message ?? "")")
    }
  }

  @Test func textThatLooksLikeAURLIsNoPlace() throws {
    for text in ["http://nas/", "s3://bucket", "dav+https://x/a:b", "http:/x", "s3:x", "./a:b", "a/b:c", ""] {
      #expect(try Places.destination(BytePath(text)) == nil, "\(text)")
    }
  }

  @Test func aFileThatOthersCanWriteIsNotUsed() throws {
    let file = scratch.file("config.toml", Array("[places.nas]\nurl = \"http://nas/\"\n".utf8))
    #expect(try Places.load(file).all.count == 1)
    for mode: mode_t in [0o664, 0o646] {
      _ = file.withCString { chmod($0, mode) }
      #expect(usageError { () throws(UsageError) in _ = try Places.load(file) }?.contains("chmod go-w") == true)
    }
    #expect(try Places.load(scratch.path.appending("none")).all.isEmpty)
  }

  @Test func aPlaceThatIsAddedIsReadAsItWasGiven() throws {
    var text = PlaceText("nas", "http://nas/a\"b\\")
    let given: [BytePath] = [
      "add", "--token-file", "/t o\"k", "--include", "*.JPG", "--include", "a\\*", "--verify", "--header", "@/h", "-j",
      "4",
    ]
    try text.add(try Arguments(given, PlacesCommand.declaration))
    let place = try #require(
      try PlacesReader(
        "", Array("\n[places.nas]\n\(text.lines.dropFirst().joined(separator: "\n"))\nurl='http://x/'".utf8)
      ).places().first)
    #expect(place.values["token-file"] == ["/t o\"k"] && place.values["include"] == ["*.JPG", "a\\*"])
    #expect(place.values["verify"] == [] && place.values["header"] == ["@/h"] && place.values["jobs"] == ["4"])
  }
}

extension BytePath {
  fileprivate func appendingBytes(of other: BytePath) -> BytePath { BytePath(bytes + other.bytes) }
}
