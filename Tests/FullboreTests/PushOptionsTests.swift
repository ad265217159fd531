import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Testing

@testable import fullbore

@Suite struct PushOptionsTests {
  func options(_ arguments: BytePath...) throws(UsageError) -> PushOptions {
    try PushOptions(try Arguments(arguments, PushCommand.declaration))
  }

  func refusal(_ arguments: BytePath...) -> String? {
    usageError { () throws(UsageError) in _ = try PushOptions(try Arguments(arguments, PushCommand.declaration)) }
  }

  @Test func nothingIsNeededButASourceAndADestination() throws {
    let options = try options("a", "b/", "http://host/")
    #expect(options.sources == ["a", "b/"])
    #expect(options.destination.endpoint.text == "http://host/")
    #expect(options.pace == PaceOptions() && options.partSize == nil)
    #expect(options.connection == ConnectionOptions())
    #expect(options.output == OutputOptions())
    #expect(options.journal.isAbsolute)
  }

  @Test func aResumeTakesThePaceOfItsOwnLink() throws {
    let words: [BytePath] = ["--bwlimit", "12M", "-j", "2", "--parts-at-once", "3"]
    let resume = try ResumeCommand(try Arguments(words, ResumeCommand.declaration))
    #expect(resume.pace.bytesPerSecond == 12 << 20 && resume.pace.limiter != nil)
    #expect(resume.pace.jobs == 2 && resume.pace.partsAtOnce == 3)
    #expect(try ResumeCommand(try Arguments([], ResumeCommand.declaration)).pace == PaceOptions())
  }

  @Test func severalDestinationsShareWhatIsNotForOneServer() throws {
    let options = try options(
      "--bwlimit", "20M", "--retries", "3", "--overwrite", "--header", "K: V", "--insecure", "--proxy",
      "http://proxy:3128", "a", "http://host/", "--also", "https://other/in/", "--also", "http://third:8080/")
    #expect(options.all.map(\.title) == ["host:80", "other:443", "third:8080"])
    for other in options.also {
      #expect(other.limiter != nil && other.limiter === options.limiter)
      #expect(other.connection.retries == 3 && other.overwrites)
      #expect(other.connection.headers.isEmpty && !other.connection.isInsecure && other.connection.proxy == nil)
    }
    #expect(options.connection.headers.count == 1 && options.connection.isInsecure)
    #expect(refusal("a", "http://h/x/", "--also", "http://h/X/../x/y/")?.contains("one is in the other") == true)
    #expect(refusal("a", "http://h/x/", "--also", "http://h/xy/") == nil)
    #expect(refusal("a", "b", "http://h/", "--also", "http://g/c")?.hasPrefix("--also http://g/c: ") == true)
    #expect(refusal("-", "http://h/x", "--also", "http://g/")?.contains("needs a name") == true)
  }

  @Test func everyOptionArrives() throws {
    let options = try options(
      "-j", "4", "--parts-at-once=2", "--part-size", "8M", "--bwlimit", "20M", "--verify", "--overwrite", "--check",
      "--name", "x.jpg", "--include", "*.jpg", "--exclude", "tmp", "--hidden", "-n", "--header", "K: V ", "--insecure",
      "--proxy", "http://proxy:3128", "--retries", "0", "--timeout", "30s", "--finish-timeout", "2m",
      "--journal", "/j", "--json", "-v", "a",
      "put+http://host/")
    #expect(options.pace.jobs == 4 && options.pace.partsAtOnce == 2 && options.partSize == 8 << 20)
    #expect(options.pace.bytesPerSecond == 20 << 20)
    #expect(options.verifies && options.overwrites && options.checks && options.isDryRun)
    #expect(options.name == "x.jpg" && options.journal == "/j" && options.tree.includesHidden)
    #expect(
      options.tree.filter == GlobFilter(includes: [Glob("*.jpg")], excludes: [Glob("tmp")], sourceNames: ["a"]))
    #expect(options.connection.headers == [.field(name: "K", value: "V")])
    #expect(options.connection.isInsecure && options.connection.proxy == .url(Proxy("http://proxy:3128")!))
    #expect(options.connection.retries == 0 && options.connection.timeout == .seconds(30))
    #expect(options.connection.finishTimeout == .seconds(120))
    #expect(options.output == OutputOptions(isJSON: true, isVerbose: true))
  }

  @Test func theErrorNamesTheWrongArgument() {
    #expect(refusal("--jobs", "cardA/", "http://host/")?.contains("--jobs 'cardA/'") == true)
    #expect(refusal("http://host/a b.jpg", "http://other/")?.contains("%20") == true)
    #expect(refusal("http://u:secret@host/a b.jpg", "http://other/")?.contains("user and password") == true)
    #expect(refusal("a", "http:/host/x")?.contains("two slashes") == true)
  }

  /// Journals of earlier versions do not contain this option, and their entries must still be found.
  @Test func timesAreSentUnlessTheOptionOmitsThem() throws {
    #expect(try !options("a", "http://host/").omitsTimes)
    #expect(try options("a", "--no-times", "http://host/").omitsTimes)
    let destination = UploadDestination(
      endpoint: HTTPURL("http://host/")!, uploadProtocol: PlainPut(), limits: PartLimits())
    #expect(ConnectionOptions().journaled(destination, overwrite: false).omitsTimes == nil)
    #expect(ConnectionOptions().journaled(destination, overwrite: false, omitsTimes: true).omitsTimes == true)
  }

  @Test(
    arguments: [
      ("[a.jpg", "not closed"), ("a[]", "not closed"), ("[!]x", "not closed"), ("[[:alpha:]", "not closed"),
      ("[[:letter:]]", "no class '[:letter:]'"), ("a\\", "nothing follows"), ("a/../b", "no path"), ("..", "no path"),
      ("a//b", "no path"), ("./", "names nothing"), ("", "names nothing"),
    ] as [(BytePath, String)])
  func aPatternThatCanMatchNothingIsRefused(_ pattern: BytePath, _ words: String) {
    for option: BytePath in ["--include", "--exclude"] {
      #expect(refusal(option, pattern, "a", "http://host/")?.contains(words) == true)
    }
  }

  @Test(
    arguments: [
      "*.jpg", "[]a]", "[!]]", "[^]x]", "[[:alpha:]_]", "[a-z[]", "\\[a", "[\\]]", "a]", "**/x/", "/x", "./x", "..x",
      "a.",
    ] as [BytePath])
  func otherPatternsAreTaken(_ pattern: BytePath) throws {
    #expect(try options("--exclude", pattern, "a", "http://host/").tree.filter.excludes == [Glob(pattern)])
  }

  @Test func databasesThatCannotBeSentAreRefused() {
    #expect(refusal("sqlite:a.db?table=t", "http://host/")?.contains("wanted is sqlite:FILE?table=T&column=C") == true)
    #expect(refusal("sqlite:a.db?table=t&column=c", "http://host/a")?.contains("many rows") == true)
    for double in ["row=1&row=2", "where=a&where=b", "table=t", "name=n&version=v&name=n"] as [BytePath] {
      let url = BytePath("sqlite:a.db?table=t&column=c&".utf8 + double.bytes)
      #expect(refusal(url, "http://host/")?.contains("is given twice") == true, "\(url)")
    }
  }

  /// One message, whatever the destination and `--name` are: none of them makes it possible.
  @Test func aLayoutIsNotForStandardInput() {
    for words in [["-", "http://host/"], ["--name", "a", "-", "http://host/"], ["-", "http://host/a"]] as [[BytePath]] {
      let refusal = usageError { () throws(UsageError) in
        _ = try PushOptions(try Arguments(["--layout", "{name}"] + words, PushCommand.declaration))
      }
      #expect(refusal == "--layout is not for standard input: leave it out", "\(words)")
    }
  }

  @Test func optionsOfS3AreRefusedForOtherDestinations() {
    #expect(refusal("--endpoint", "http://host:9000", "a", "http://host/")?.contains("for s3:// only") == true)
    #expect(refusal("--metadata", "k=v", "a", "put+http://host/")?.contains("for s3:// only") == true)
  }

  @Test func encryptionIsOneThatS3Knows() throws {
    func encryption(_ words: BytePath...) throws(UsageError) -> S3Encryption? {
      let arguments = try Arguments(words + ["a", "s3://media/"], PushCommand.declaration)
      var options = try S3Options(arguments)
      try options.takeObjectOptions(arguments)
      return options.encryption
    }
    func refusal(_ words: BytePath...) -> String? {
      usageError { () throws(UsageError) in
        let arguments = try Arguments(words + ["a", "s3://media/"], PushCommand.declaration)
        var options = try S3Options(arguments)
        try options.takeObjectOptions(arguments)
      }
    }
    #expect(try encryption() == nil)
    #expect(try encryption("--sse", "AES256") == S3Encryption(algorithm: "AES256"))
    #expect(try encryption("--sse=aws:kms", "--sse-kms-key", "k") == S3Encryption(algorithm: "aws:kms", keyID: "k"))
    #expect(refusal("--sse", "aws:fsx")?.contains("AES256 or aws:kms") == true)
    #expect(refusal("--sse", "AES256", "--sse-kms-key", "k")?.contains("--sse aws:kms") == true)
    #expect(self.refusal("--sse", "AES256", "a", "http://host/")?.contains("for s3:// only") == true)
  }

  @Test func aChecksumMustBeOneThatTheDestinationKnows() throws {
    for destination: BytePath in ["http://host/", "tus+http://host/"] {
      #expect(try options("--checksum", "crc32c", "a", destination).checksum == .crc32c)
      #expect(refusal("--checksum", "crc99", "a", destination)?.contains("one of") == true)
    }
    #expect(try options("--checksum", "sha256", "a", "put+http://host/").checksum == .sha256)
    #expect(refusal("--checksum", "crc32c", "a", "put+http://host/")?.contains("only sha256, sha512") == true)
    #expect(refusal("--checksum", "sha256", "a", "dav+http://host/")?.contains("dav carries none") == true)
  }

  @Test func layoutsAndEditsAreCheckedBeforeAnythingIsSent() throws {
    #expect(try options("a", "http://host/").layout == nil && options("a", "http://host/").edits == nil)
    #expect(try options("--layout", "{year}/{name}", "--edits=both", "a", "http://host/").edits == .both)
    #expect(refusal("--layout", "{yaer}/{name}", "a", "http://host/")?.contains("{yaer} is not known") == true)
    #expect(refusal("--layout", "{name}", "--name", "x", "a", "http://host/")?.contains("leave out --name") == true)
    #expect(refusal("--layout", "{name}", "a", "http://host/x")?.contains("with a slash") == true)
    #expect(refusal("--edits", "some", "a", "http://host/")?.contains("current, original, both") == true)
  }

  @Test func urlsAreSources() throws {
    let options = try options("https://other/films/a%20b.mov?key=secret", "file", "http://host/")
    #expect(options.sources == ["file"] && options.urls.map(\.name) == ["a b.mov"])
    let identity = try #require(options.urls.first?.identity.description)
    #expect(identity.hasPrefix("https://other/films/a%20b.mov?#") && !identity.contains("secret"))
    #expect(URLSource(kept: BytePath(identity)) == nil)
    #expect(URLSource(kept: "https://other/a.mov")?.url.text == "https://other/a.mov")
    #expect(refusal("https://other/", "http://host/")?.contains("--name") == true)
    #expect(refusal("https://other/a", "http://host/x") == nil)
    #expect(refusal("https://user:secret@other/a", "http://host/")?.contains("secret") == false)
    #expect(refusal("https://other/a", "https://other/b", "http://host/x")?.contains("end it with a slash") == true)
  }

  @Test func formsHaveOptionsOfTheirOwn() throws {
    let scratch = Scratch()
    let fields = scratch.file("fields", Array("album=Trip\nkey=a=b\n".utf8))
    let options = try options(
      "--field", "assetData", "--form", "title={name}", "--form", BytePath([UInt8(ascii: "@")] + fields.bytes),
      "--expect", "303", "--reply", "$.files[0].url", "a", "b", "form+http://host/upload")
    let post = try options.form.post()
    #expect(post.field == "assetData" && post.expectedStatus == 303 && post.reply?.description == "$.files[0].url")
    #expect(post.fields.map(\.name) == ["title", "album", "key"] && post.fields.last?.value == "a=b")
    #expect(options.form.journaled.hadTypedFields && options.form.journaled.fieldFiles == [fields.description])
    #expect(throws: UploadError.self) { _ = try FormOptions(options.form.journaled) }
    var kept = options.form.journaled
    kept.hadTypedFields = false
    #expect(try FormOptions(kept).post().fields.map(\.name) == ["album", "key"])
    #expect(refusal("--field", "x", "a", "http://host/") == "--field: only form+ destinations take it")
    #expect(refusal("--form", "=x", "a", "form+http://host/")?.contains("NAME=VALUE") == true)
    #expect(refusal("--reply", "$..x", "a", "form+http://host/")?.contains("path in JSON") == true)
    #expect(refusal("--expect", "99", "a", "form+http://host/") != nil)
  }

  @Test func checksumsAreThoseOfTheProtocol() throws {
    #expect(try options("--checksum", "SHA-1", "a", "http://host/").checksum == .sha1)
    #expect(try options("--checksum=crc32c", "a", "tus+http://host/").checksum == .crc32c)
    #expect(refusal("--checksum", "crc7", "a", "http://host/")?.contains("wanted one of md5, sha1") == true)
    #expect(refusal("--checksum", "sha1", "a", "put+http://host/")?.contains("--verify") == true)
    #expect(try options("--checksum", "sha512", "a", "put+http://host/").checksum == .sha512)
  }

  /// The shell has made operands of the other words of the key, of which the last one would be taken for the destination.
  @Test func aKeyThatIsNotQuotedIsExplained() {
    let message = refusal("a", "http://host/", "--seal", "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5", "root@vm")
    #expect(message?.hasPrefix("--seal: the key has blanks in it: quote it, like --seal \"$(cat ") == true)
  }

  @Test func namesAreCheckedBeforeAnythingIsSent() {
    #expect(refusal("a", "b", "http://host/x")?.contains("end it with a slash") == true)
    #expect(refusal("--name", "x", "a", "b", "http://host/")?.contains("single source") == true)
    #expect(refusal("--name", "x", "a", "http://host/y")?.contains("ends in a name already, 'y'") == true)
    #expect(refusal("--name", "../x", "a", "http://host/")?.contains("wanted a name") == true)
    #expect(refusal("a")?.contains("destination") == true)
  }

  @Test func secretsAreReadFromTheirFilesAndKeptOutOfTheOptions() throws {
    let scratch = Scratch()
    let token = scratch.file("token", Array("abc.def\n".utf8))
    let fields = scratch.file("fields", Array("X-One: 1\r\n\r\nX-Two:  2 \n".utf8))
    let options = try options(
      "--token-file", token, "--header", BytePath([UInt8(ascii: "@")] + fields.bytes), "--header", "X-Three: 3", "a",
      "http://host/")
    let headers = try options.connection.requestHeaders(for: options.destination.endpoint)
    #expect(headers["Authorization"] == "Bearer abc.def")
    #expect(headers["X-One"] == "1" && headers["X-Two"] == "2" && headers["X-Three"] == "3")
    #expect(!"\(options)".contains("abc.def"))
  }

  @Test func anInvalidSecretFileIsRefusedWithoutShowingIt() {
    let scratch = Scratch()
    let several = scratch.file("several", Array("one\ntwo\n".utf8))
    let noField = scratch.file("fields", Array("secret\n".utf8))
    #expect(refusal("--token-file", several, "a", "http://host/")?.contains("one line") == true)
    #expect(refusal("--token-file", "/nonexistent", "a", "http://host/")?.contains("No such file") == true)
    let header = refusal("--header", BytePath([UInt8(ascii: "@")] + noField.bytes), "a", "http://host/")
    #expect(header?.contains("wanted 'Name: value'") == true && header?.contains("secret") == false)
    #expect(refusal("--header", "K: a\u{1}b", "a", "http://host/")?.contains("control character") == true)
    #expect(refusal("--header", "a b: c", "a", "http://host/")?.contains("wanted 'Name: value'") == true)
  }
}
