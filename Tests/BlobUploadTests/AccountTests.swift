import BlobHTTP
import Blobs
import Testing

@testable import BlobUpload

/// One URL may be the root of a separate tree of files for each user: a file that one user has sent is not done for
/// another.
@Suite struct AccountTests {
  private func destination(_ authorization: String?, _ uploadProtocol: any UploadProtocol = PlainPut())
    -> UploadDestination
  {
    var headers = HTTPHeaders()
    headers["Authorization"] = authorization
    return UploadDestination(
      endpoint: HTTPURL("https://host.example/files/")!, uploadProtocol: uploadProtocol, limits: PartLimits(),
      headers: headers)
  }

  private func basic(_ login: String) -> String { "Basic \(Base64.encode(Array(login.utf8)))" }

  private func kept(_ destination: UploadDestination) -> JournalDestination {
    JournalDestination(
      endpoint: destination.endpoint.text, protocolName: destination.uploadProtocol.name,
      recipient: destination.journaledRecipient, account: destination.journaledAccount)
  }

  private func intent(at destination: UploadDestination) -> JournalIntent {
    var intent = BlobUploadTests.intent()
    intent.recipient = destination.target("a.jpg", length: 100).recipient
    return intent
  }

  /// A bearer token does not say whose it is.
  @Test func anAccountIsThatOfTheApp() {
    func destination(_ account: String?, _ token: String = "Bearer one") -> UploadDestination {
      var destination = self.destination(token)
      destination.account = account
      return destination
    }
    let keys = ["anna", "bob", "", nil].map { intent(at: destination($0)).key }
    #expect(Set(keys).count == 4)
    #expect(keys[0] == intent(at: destination("anna", "Bearer two")).key)
    #expect(keys[0] != intent(at: self.destination(basic("anna:x"))).key)
    #expect(!keys[0].contains("anna"))
    // It stays when something else is set.
    var changed = destination("anna")
    changed.uploadProtocol = Tus()
    changed.headers["Authorization"] = basic("bob:x")
    #expect(changed.journaledAccount == destination("anna").journaledAccount)
    #expect(changed.journaledAccount != destination("bob").journaledAccount)
    let made = UploadDestination(
      endpoint: changed.endpoint, uploadProtocol: Tus(), limits: PartLimits(), account: "anna")
    #expect(made.journaledAccount == changed.journaledAccount)
  }

  /// The receiver of a form decides what to do with the file.
  @Test func aFormIsNotTheFileOfItsName() {
    #expect(intent(at: destination(nil, FormPost())).key != intent(at: destination(nil)).key)
  }

  @Test(arguments: ["put", "form"]) func aFileOfAnotherUserIsAnotherFile(_ name: String) {
    let uploadProtocol: any UploadProtocol =
      name == "form" ? FormPost(fields: [FormField(name: "a", value: "b")]) : PlainPut()
    let keys = ["anna:one", "bob:one", "bob:two:three"].map { intent(at: destination(basic($0), uploadProtocol)).key }
    #expect(keys[0] != keys[1] && keys[1] == keys[2])
    #expect(keys[0] != intent(at: destination(nil, uploadProtocol)).key)
    #expect(
      JournalIntent.parts(ofKey: keys[0]).recipient
        == intent(at: destination(basic("anna:one"), uploadProtocol)).recipient)
  }

  /// The bytes of these names are not UTF-8, and differ in the last byte only.
  @Test func namesAreComparedByTheirBytes() {
    let keys = ([0xE8, 0xE9] as [UInt8]).map { last in
      intent(at: destination("Basic \(Base64.encode(Array("andr".utf8) + [last] + Array(":x".utf8)))")).key
    }
    #expect(keys[0] != keys[1])
  }

  /// A token is renewed, and a name without a password may be a token.
  @Test(arguments: [
    "Bearer one", "Bearer \(Base64.encode(Array("a:b".utf8)))", "Basic \(Base64.encode(Array("token:".utf8)))",
    "Basic \(Base64.encode(Array(":password".utf8)))", "Basic ?", "Digest username=\"anna\"",
  ])
  func credentialsThatNameNobodyArePartOfNothing(_ authorization: String) {
    #expect(destination(authorization).journaledAccount == "")
    #expect(intent(at: destination(authorization)).key == intent(at: destination(nil)).key)
  }

  @Test func aFileSentByOneUserIsSentAgainForAnotherUser() async throws {
    let folder = JournalFolder()
    let journal = try await folder.open()
    let (anna, bob) = (destination(basic("anna:one")), destination(basic("bob:one")))
    for user in [anna, bob] {
      let claim = try await journal.claim(intent(at: user), at: kept(user))
      #expect(claim.name == "fresh")
      journal.done(try #require(claim.id), UploadResult())
    }
    for user in [anna, bob, destination(basic("anna:two"))] {
      #expect(try await journal.claim(intent(at: user), at: kept(user)).name == "done")
    }
    await journal.close()
  }

  /// The journal is of an earlier version, which did not distinguish users.
  /// An app that makes the journal's destination itself, as for an `UploadQueue`, is no earlier version.
  @Test func aFileSentWithoutAUserIsSentAgainForAUser() async throws {
    let folder = JournalFolder()
    let journal = try await folder.open()
    let place = destination(nil)
    let nobody = try await journal.destinationID(
      JournalDestination(endpoint: place.endpoint.text, protocolName: place.uploadProtocol.name))
    #expect(try await journal.destinationID(kept(destination(basic("anna:one")))) != nobody)
  }

  @Test(arguments: [nil, "query"]) func filesSentByAnEarlierVersionBelongToTheFirstUser(_ recipient: String?)
    async throws
  {
    for user in [destination(basic("anna:one")), destination("Bearer one")] {
      let folder = JournalFolder()
      let journal = try await folder.open()
      var (old, new) = (kept(user), kept(user))
      (old.account, old.recipient, new.recipient) = (nil, recipient, recipient)
      var was = BlobUploadTests.intent()
      was.recipient = recipient
      journal.done(try #require(try await journal.claim(was, at: old).id), UploadResult())
      let id = try await journal.destinationID(old)
      var now = was
      if !user.journaledAccount.isEmpty { now.recipient = "\(recipient ?? "")@\(user.journaledAccount)" }
      #expect(try await journal.claim(now, at: new).name == "done")
      #expect(try await journal.destinationID(new) == id)
      #expect(try await journal.summary().map(\.destination) == [new])
      var (other, others) = (new, was)
      other.account = destination(basic("bob:one")).journaledAccount
      others.recipient = "\(recipient ?? "")@\(other.account ?? "")"
      #expect(try await journal.claim(others, at: other).name == "fresh")
      await journal.close()
    }
  }

  /// An earlier version did not distinguish recipients: a form that it has not posted is posted once, by a push or by a
  /// resume.
  @Test(arguments: [nil, "anna:one"]) func formsThatAnEarlierVersionHasNotPostedAreTakenOver(_ login: String?)
    async throws
  {
    let folder = JournalFolder()
    let journal = try await folder.open()
    let form = destination(login.map(basic), FormPost(fields: [FormField(name: "a", value: "b")]))
    var old = kept(form)
    (old.account, old.recipient) = (nil, nil)
    let ids = try await journal.claim(
      ["a.jpg", "b.jpg", "c.jpg"].map { BlobUploadTests.intent($0) }, destination: journal.destinationID(old)
    ).compactMap(\.id)
    journal.failed(ids[0], "no")
    journal.done(ids[1], UploadResult())
    journal.released(ids[2])
    #expect(try await journal.claim(intent(at: form), at: kept(form)).id == ids[0])
    #expect(try await journal.unfinished().map(\.id) == [ids[0], ids[2]])
    #expect(try await journal.unfinished().map(\.destination) == [kept(form), kept(form)])
    await journal.close()
  }

  @Test func theUserIsKnownBeforeTheServerHasAnswered() {
    let anna = destination(basic("anna:one"))
    #expect(UploadDestination.account(of: anna.headers) == anna.journaledAccount && !anna.journaledAccount.isEmpty)
    #expect(UploadDestination.account(of: [:]) == "")
  }

  @Test func aResumeGoesOnForTheSameUserOnly() throws {
    let anna = kept(destination(basic("anna:one")))
    var bob = destination(basic("bob:one"))
    var message = ""
    do { try bob.goOn(with: anna) } catch { message = error.message }
    #expect(message.contains("another user"))
    #expect(throws: UploadError.self) { try bob.checkUser(of: anna) }
    // Without a name the user is unknown, and the files are those with which the push started.
    let pairs: [[String?]] = [["anna:one", nil], [nil, "anna:one"], ["anna:one", "anna:two"]]
    for pair in pairs {
      let before = destination(pair[0].map(basic))
      var after = destination(pair[1].map(basic))
      try after.goOn(with: kept(before))
      #expect(intent(at: after) == intent(at: before))
    }
    var early = kept(destination(nil))
    early.account = nil
    try bob.goOn(with: early)
    #expect(intent(at: bob).recipient == nil)
  }
}
