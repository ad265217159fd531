import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

@Suite struct StatusTests {
  let scratch = Scratch()
  let now = Int64(time(nil))

  /// The status of a journal with one finished file, one failed file and one unfinished upload.
  func status(showsAll: Bool) async throws -> JournalStatus {
    let journal = try await Journal(at: scratch.path.appending("journal.sqlite"))
    let id = try await journal.destinationID(JournalDestination(endpoint: "http://host/in/", protocolName: "tus"))
    let names: [BytePath] = ["done.jpg", BytePath([0x66, 0xFF]), "under.mov"]
    let claims = try await journal.claim(
      names.map { name in
        JournalIntent(
          source: BytePath("/src").appending(name), target: "http://host/in/\(name)", path: name, length: 1024,
          validator: Validator(version: "1"))
      }, destination: id)
    let ids = claims.compactMap { if case .fresh(let id) = $0 { id } else { nil } }
    #expect(ids.count == 3)
    journal.done(ids[0], UploadResult())
    journal.failed(ids[1], "409: other bytes\nare there")
    try await journal.flush()
    let status = JournalStatus(
      sums: try await journal.summary(), unfinished: try await journal.unfinished(),
      done: showsAll ? try await journal.entries(.done, limit: -1) : [], showsAll: showsAll, now: now)
    await journal.close()
    return status
  }

  @Test func peopleSeeSumsAndTheReasonsOfFailures() async throws {
    let status = try await status(showsAll: false)
    let text = status.text
    #expect(text.hasPrefix("http://host/in/ (tus)\n"))
    #expect(text.contains("  done: 1 file, 1.00 KiB\n"))
    #expect(text.contains("  failed: 1 file, 0 B of 1.00 KiB sent\n"))
    #expect(text.contains("    2  f\u{FFFD}  0 B of 1.00 KiB sent, begun just now, last touched just now\n"))
    #expect(text.contains("        409: other bytes\\nare there\n"))
    #expect(text.contains("  under way: 1 file, 0 B of 1.00 KiB sent\n"))
    #expect(text.contains("under.mov  0 B of 1.00 KiB sent, begun just now, process \(getpid()) is sending it\n"))
    #expect(text.hasSuffix("'fullbore abort 2' gives it up.\n"))
    #expect(!text.contains("done.jpg"))
    #expect(status.json.split(separator: "\n").count == 5)
    #expect(!text.contains("reading") && !text.contains("run that push again"))
  }

  /// The owner process has died, so no process sends the file any more.
  @Test func whatNobodySendsIsInterruptedForProgramsToo() async throws {
    let journal = try await Journal(at: scratch.path.appending("journal.sqlite"))
    for overwrite in [false, true] {
      let id = try await journal.destinationID(
        JournalDestination(endpoint: "http://host/in/", protocolName: "tus", overwrite: overwrite))
      _ = try await journal.claim(
        [
          JournalIntent(
            source: BytePath("/src/\(overwrite)"), target: "http://host/in/\(overwrite)",
            path: BytePath("\(overwrite)"), length: 1024,
            validator: nil)
        ], destination: id)
    }
    await journal.close()
    let later = try await Journal(at: scratch.path.appending("journal.sqlite"))
    let status = JournalStatus(
      sums: try await later.summary(), unfinished: try await later.unfinished(), done: [], showsAll: false, now: now)
    await later.close()
    #expect(!status.json.contains("under way") && status.json.contains(#""state":"interrupted","files":2,"#))
    #expect(status.text.components(separatedBy: "http://host/in/ (tus)").count == 2, "\(status.text)")
  }

  /// A query may be secret, so the journal does not contain it, and 'fullbore resume' cannot request the file again.
  @Test(arguments: [true, false]) func aURLWhoseQueryIsNotKeptIsToBePushedAgain(hasQuery: Bool) async throws {
    let path = scratch.path.appending("journal.sqlite")
    let journal = try await Journal(at: path)
    let id = try await journal.destinationID(JournalDestination(endpoint: "http://host/in/", protocolName: "tus"))
    let url = try #require(try URLSource(hasQuery ? "http://from/v.mov?key=s3cr3t" : "http://from/v.mov"))
    _ = try await journal.claim(
      [JournalIntent(source: url.identity, target: "http://host/in/v.mov", path: "v.mov", length: 9, validator: nil)],
      destination: id)
    await journal.close()
    let later = try await Journal(at: path)
    var status = JournalStatus(
      sums: try await later.summary(), unfinished: try await later.unfinished(), done: [], showsAll: false, now: now)
    await later.close()
    status.lost = await LostSource.find(status.named)
    #expect(status.text.contains("run the same push again, or 'fullbore abort 1' gives it up") == hasQuery)
    #expect(status.text.contains("fullbore resume") == !hasQuery, "\(status.text)")
    #expect(status.json.contains("\"source_lost\":\"the query of its URL is not kept") == hasQuery, "\(status.json)")
    #expect(!status.text.contains("s3cr3t") && !status.json.contains("s3cr3t"))
  }

  /// The journal's expiry time dates from the last finished request, so the server's current response takes precedence.
  @Test func anUploadIsCalledExpiredByTheServerAlone() async throws {
    let path = scratch.path.appending("journal.sqlite")
    let journal = try await Journal(at: path)
    let id = try await journal.destinationID(JournalDestination(endpoint: "http://host/in/", protocolName: "tus"))
    let claims = try await journal.claim(
      [
        JournalIntent(
          source: BytePath("/src/a"), target: "http://host/in/a", path: BytePath("a"), length: 1024, validator: nil)
      ], destination: id)
    guard case .fresh(let entry)? = claims.first else { return #expect(Bool(false), "\(claims)") }
    journal.opened(entry, UploadSession(state: ["url": "http://host/up/1"], expires: now - 1000))
    try await journal.flush()
    await journal.close()
    let later = try await Journal(at: path)
    var status = JournalStatus(
      sums: try await later.summary(), unfinished: try await later.unfinished(), done: [], showsAll: false, now: now)
    await later.close()
    #expect(status.text.contains(", may have expired ('--check' asks)"), "\(status.text)")
    status.answers = [entry: .holds(1000, until: now + 7200)]
    #expect(status.text.contains("holds 1000 B of 1.00 KiB") && status.text.contains("kept for 2"), "\(status.text)")
    #expect(status.json.contains("\"expires\":\(now + 7200)"), "\(status.json)")
    for answer in [ServerAnswer.holds(1000, until: nil), .gone] {
      status.answers = [entry: answer]
      #expect(!status.text.contains("expired") && !status.json.contains("expires"), "\(status.text)")
    }
  }

  @Test func aPlaceMayBeABucket() throws {
    let place = S3Location(S3Address(bucket: "media", endpoint: "http://host:9000"))
    let kept = JournalDestination(endpoint: "http://host:9000/media/in/card/", protocolName: "s3", s3: place)
    for (name, isMeant) in [
      ("s3://media", true), ("s3://media/in", true), ("s3://media/in/card/", true),
      ("s3://media/i", false), ("s3://other/in/", false), ("http://host:9000/media/", true),
    ] as [(BytePath, Bool)] {
      #expect(try DestinationChoice([name]).contains(kept) == isMeant, "\(name)")
    }
    #expect(throws: UsageError.self) { try DestinationChoice(["s3://other/"]).check(isAmong: [kept]) }
    #expect(throws: UsageError.self) { try DestinationChoice(["s3://b"]) }
  }

  @Test func aPlaceMayBeABucketOfGoogles() throws {
    let kept = JournalDestination(endpoint: "https://storage.googleapis.com/media/in/card/", protocolName: "gcs")
    for (name, isMeant) in [
      ("gs://media", true), ("GS://media/in", true), ("gs://media/in/card/", true), ("gs://media/i", false),
      ("gs://other/in/", false), ("https://storage.googleapis.com/media/", true),
    ] as [(BytePath, Bool)] {
      #expect(try DestinationChoice([name]).contains(kept) == isMeant, "\(name)")
    }
    #expect(throws: UsageError.self) { try DestinationChoice(["gs://b"]) }
    #expect(throws: UsageError.self) { try DestinationChoice(["gs://media/../other"]) }
  }

  @Test func programsSeeNamesAsBytes() async throws {
    let json = try await status(showsAll: true).json
    #expect(json.contains(#""state":"failed","path":"f�","path_bytes":"66ff""#))
    #expect(
      json.contains(#""event":"destination","endpoint":"http://host/in/","protocol":"tus","state":"done","files":1"#))
    #expect(json.contains(#""state":"done","path":"done.jpg""#))
  }

  @Test(arguments: [
    ("PUT http://host/a.jpg: 409 (conflict): /a.jpg exists", "--overwrite"),
    ("POST http://host/: 507 (no room)", "room"),
    ("OPTIONS http://host/: 401 (it asks for credentials)", "--token-file"),
    ("PATCH http://host/1: answered 409 to bytes from 0 on", nil),
    ("PATCH http://host:500/409: 503 (it is not ready)", "again"), ("/a 409 b.jpg went from 409 to 500 bytes", nil),
    (
      "PUT http://host/x.jpg/y.jpg: 409 (conflict): /x.jpg: a file is in the place of a folder",
      "Nothing replaces a file"
    ),
    ("host: connection refused", nil), ("", nil),
  ])
  func failuresSayWhatToDo(_ message: String, _ word: String?) {
    let remedy = remedy(for: message)
    if let word { #expect(remedy?.contains(word) == true) } else { #expect(remedy == nil) }
  }

  @Test func whatServersSayTakesThePlaceOfWhatWasKept() async throws {
    var status = try await status(showsAll: false)
    status.answers = [2: .holds(512, until: nil), 3: .gone]
    #expect(status.text.contains("the server holds 512 B of 1.00 KiB"))
    #expect(status.text.contains("the server has dropped it: 1.00 KiB go again"))
    #expect(status.json.contains(#""held":512"#))
    status.answers = [2: .failed("the host is not there")]
    #expect(status.text.contains("        not asked: the host is not there\n"))
  }

  @Test(
    arguments: [
      (-86_400, "just now"), (0, "just now"), (59, "just now"), (60, "1 min ago"), (7199, "1 h ago"),
      (90_000, "25 h ago"),
      (172_800, "2 days ago"), (Int64.max, "106,751,991,167,300 days ago"),
    ] as [(Int64, String)])
  func agesAreToldInOneUnit(_ seconds: Int64, _ text: String) {
    #expect(Quantity.age(seconds: seconds) == text)
  }

  @Test func askingMakesNoJournal() async throws {
    let path = scratch.path.appending("none.sqlite")
    #expect(await Fullbore.run(["status", "--journal", path]) == .ok)
    #expect(await Fullbore.run(["abort", "--all", "--journal", path]) == .ok)
    #expect(await Fullbore.run(["abort", "7", "--journal", path]) == .failed)
    #expect(await Fullbore.run(["abort"]) == .usage)
    #expect(path.withCString { access($0, F_OK) } == -1)
  }
}
