import BlobHTTP
import BlobUpload
import Blobs
import Testing

@testable import fullbore

@Suite struct ClaimedNamesTests {
  @Test func aNameIsOneFilesUntilItIsGivenToAnother() {
    let names = ClaimedNames()
    #expect(names.take("2024/a.jpg", for: "/one/a.jpg"))
    #expect(names.take("2024/a.jpg", for: "/one/a.jpg"))
    #expect(!names.take("2024/a.jpg", for: "/two/a.jpg"))
    #expect(names.isTaken("2024/a.jpg", by: "/one/a.jpg") && !names.isTaken("2024/a.jpg", by: "/two/a.jpg"))
    names.give("2024/a.jpg", to: "/two/a.jpg")
    #expect(names.take("2024/a.jpg", for: "/two/a.jpg"))
  }

  /// The table grows for these names too. A full one was searched for ever.
  @Test(.timeLimit(.minutes(1))) func manyNamesAreGiven() {
    let names = ClaimedNames()
    for number in 0..<5000 { names.give(BytePath("\(number)"), to: "/a") }
    #expect((0..<5000).allSatisfy { names.isTaken(BytePath("\($0)"), by: "/a") })
    #expect(names.isFree("5000", for: "/a"))
  }

  @Test func manyNamesAreKeptApart() {
    let names = ClaimedNames()
    func take(_ card: String) -> Int {
      (0..<100_000).filter { names.take(BytePath("2024/\($0).jpg"), for: BytePath("/\(card)/\($0).jpg")) }.count
    }
    // Two of 100,000 names have equal 44-bit values once in 3,500 runs.
    #expect(take("one") > 99_990)
    #expect(take("one") > 99_990)
    #expect(take("two") < 100)
  }
}

@Suite struct TrustTests {
  @Test(arguments: [
    ("POST http://host/files/a.jpg: 405 (it does not take this method there)", "http://host/files/ with --name a.jpg"),
    ("POST http://host/files/a.jpg: 405 (it takes no uploads there)", "--read-only"),
    ("POST http://host/files/: 405 (it does not take this method there)", "protocol"),
    ("PUT http://host/files/a.jpg: 405 (it does not take this method there)", "protocol"),
    ("PUT http://host/a.jpg: 409 (another file has that name)", "is lost then"),
    ("GET http://host/a.jpg: cannot be read back: 405 (it does not take this method there)", "leave it out"),
    ("PROPFIND http://host/a/: 405 (it does not take this method there)", "protocol"),
  ])
  func adviceLosesNothing(_ message: String, _ words: String) {
    #expect(remedy(for: message)?.contains(words) == true, "\(remedy(for: message) ?? "")")
  }

  /// A refused list request says nothing about a name.
  @Test func aRefusedListIsNoWordAboutAName() {
    #expect(remedy(for: "GET http://host/bucket: 409 (another file has that name, or is on its way to it)") == nil)
  }

  @Test func adviceFollowsThePunctuationOfTheMessage() {
    func advised(_ message: String, _ code: TransportError.Code) -> String {
      UploadError(TransportError(code, message)).advised
    }
    #expect(advised("Does a proxy rewrite paths?", .badResponse) == "Does a proxy rewrite paths? Is the port right?")
    #expect(advised("it is no HTTP", .badResponse) == "it is no HTTP. Is the port right?")
    #expect(advised("No method was acceptable.", .proxy).hasPrefix("No method was acceptable. See --proxy"))
    let refused = advised("the proxy http://p:3128 refuses to connect us to host:443 (403)", .proxy)
    #expect(refused.contains("right proxy") && !refused.contains("@FILE"))
    let full = advised("no connection to h:80 can be made: too many open files (the limit is ulimit -n)", .connect)
    #expect(full.contains("Raise the limit") && !full.contains("running"))
  }

  @Test func refusalsDoNotRepeatSecrets() {
    for destination: BytePath in ["ftp://me:secret@host/?sig=secret", "http://me:secret@host/?sig=secret"] {
      let refusal = usageError { () throws(UsageError) in
        _ = try PushOptions(try Arguments(["a", destination], PushCommand.declaration))
      }
      #expect(refusal?.contains("secret") == false, "\(refusal ?? "taken")")
    }
    let endpoint = usageError { () throws(UsageError) in
      _ = try PushOptions(
        try Arguments(["--endpoint", "http://me:secret@host/", "a", "s3://bucket/"], PushCommand.declaration))
    }
    #expect(endpoint?.contains("secret") == false, "\(endpoint ?? "taken")")
  }

  @Test func aPushIsShownAsItWasGivenWithoutSecrets() throws {
    let options = try PushOptions(
      try Arguments(["https://other/a.mov?key=secret", "/card/", "http://host/"], PushCommand.declaration))
    #expect(options.given == ["https://other/a.mov?…", "/card/"])
    #expect(options.namesMayMeet)
    #expect(try !PushOptions(try Arguments(["/card", "http://host/"], PushCommand.declaration)).namesMayMeet)
  }
}
