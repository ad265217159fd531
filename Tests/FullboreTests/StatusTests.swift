import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

@Suite struct StatusTests {
  let scratch = Scratch()
  let now = Int64(time(nil))

  /// The status of a journal with one finished file, one failed file and one unfinished upload.
  func status(showsAll: Bool) async throws -> (status: JournalStatus, journal: Journal) {
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
    return (try await status(of: journal, showsAll: showsAll), journal)
  }

  private func status(of journal: Journal, showsAll: Bool = false) async throws -> JournalStatus {
    var status = JournalStatus(sums: try await journal.summary(), showsAll: showsAll, now: now)
    for entry in try await journal.unfinished() { status.add(entry) }
    return status
  }

  /// The status as text and as JSON.
  private func shown(_ status: JournalStatus, _ journal: Journal) async throws -> (text: String, json: String) {
    let pages = try await JournalPages(journal)
    var (text, json) = ("", "")
    try await status.write(pages) { text += $0 }
    try await status.writeJSON(pages) { json += $0 }
    return (text, json)
  }

  @Test func peopleSeeSumsAndTheReasonsOfFailures() async throws {
    let (status, journal) = try await status(showsAll: false)
    let (text, json) = try await shown(status, journal)
    #expect(text.hasPrefix("http://host/in/ (tus)\n"))
    #expect(text.contains("  done: 1 file, 1.00 KiB\n"))
    #expect(text.contains("  failed: 1 file, 0 B of 1.00 KiB sent\n"))
    let times = /0 B of 1.00 KiB sent, begun \d\d:\d\d \(just now\), last touched \d\d:\d\d \(just now\)\n/
    #expect(text.contains("    2  f\u{FFFD}  0 B of") && text.contains(times), "\(text)")
    #expect(text.contains("        409: other bytes\\nare there\n"))
    #expect(text.contains("  under way: 1 file, 0 B of 1.00 KiB sent\n"))
    let owned = /under.mov  0 B of 1.00 KiB sent, begun \d\d:\d\d \(just now\), process \d+ is sending it\n/
    #expect(text.contains(owned), "\(text)")
    #expect(text.hasSuffix("'fullbore abort 2' gives it up.\n"))
    #expect(!text.contains("done.jpg"))
    #expect(json.split(separator: "\n").count == 5)
    #expect(!text.contains("reading") && !text.contains("run that push again"))
  }

  @Test func oneStateAloneCanBeShown() async throws {
    var (status, journal) = try await status(showsAll: true)
    for (only, name) in [(JournalStatus.Standing.failed, "f\u{FFFD}"), (.running, "under.mov")] {
      status = JournalStatus(sums: try await journal.summary(), showsAll: true, now: now)
      status.only = only
      for entry in try await journal.unfinished() { status.add(entry) }
      let (text, json) = try await shown(status, journal)
      for other in ["f\u{FFFD}", "under.mov", "done.jpg"] {
        #expect(text.contains("  \(other)  ") == (other == name), "\(text)")
      }
      #expect(json.components(separatedBy: "\"event\":\"file\"").count == 2, "\(json)")
    }
    #expect(JournalStatus.Standing(option: "running") == .running && JournalStatus.Standing(option: "under way") == nil)
  }

  /// A place that has no file of the state is not named.
  @Test func aStateAloneNamesItsPlacesOnly() async throws {
    let (_, journal) = try await status(showsAll: false)
    let other = try await journal.destinationID(JournalDestination(endpoint: "http://other/", protocolName: "tus"))
    let entry = JournalIntent(source: "/src/x", target: "http://other/x", path: "x", length: 1, validator: nil)
    _ = try await journal.claim([entry], destination: other)
    for (only, text) in [
      (JournalStatus.Standing.failed, "http://host/in/ (tus)\n"), (.interrupted, "No file is interrupted.\n"),
    ] {
      var status = JournalStatus(sums: try await journal.summary(), showsAll: false, now: now)
      status.only = only
      for entry in try await journal.unfinished() { status.add(entry) }
      let found = try await shown(status, journal)
      #expect(found.text.hasPrefix(text) && !found.text.contains("http://other"), "\(found.text)")
      #expect(!found.json.contains("http://other"), "\(found.json)")
    }
  }

  /// The owner process has died, so no process sends the file any more.
  @Test func aFileWithoutALivingOwnerIsInterruptedInJSONToo() async throws {
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
    let (text, json) = try await shown(status(of: later), later)
    #expect(!json.contains("under way") && json.contains(#""state":"interrupted","files":2,"#))
    #expect(text.components(separatedBy: "http://host/in/ (tus)").count == 2, "\(text)")
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
    var status = try await status(of: later)
    status.lost = await LostSource.find(status.named)
    let (text, json) = try await shown(status, later)
    #expect(text.contains("run the same push again, or 'fullbore abort 1' gives it up") == hasQuery)
    #expect(text.contains("fullbore resume") == !hasQuery, "\(text)")
    #expect(json.contains("\"source_lost\":\"the query of its URL is not kept") == hasQuery, "\(json)")
    #expect(!text.contains("s3cr3t") && !json.contains("s3cr3t"))
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
    var status = try await status(of: later)
    var (text, json) = try await shown(status, later)
    #expect(text.contains(", may have expired ('--check' asks)"), "\(text)")
    status.answers = [entry: .holds(1000, until: now + 7200)]
    (text, json) = try await shown(status, later)
    #expect(text.contains("holds 1000 B of 1.00 KiB") && text.contains("kept for 2"), "\(text)")
    #expect(json.contains("\"expires\":\(now + 7200)"), "\(json)")
    for answer in [ServerAnswer.holds(1000, until: nil), .gone] {
      status.answers = [entry: answer]
      (text, json) = try await shown(status, later)
      #expect(!text.contains("expired") && !json.contains("expires"), "\(text)")
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

  /// The journal is read page by page, and so is what `resume` and `abort` go through.
  @Test(arguments: [true, false]) func allPagesOfTheJournalAreShown(showsAll: Bool) async throws {
    let count = JournalPages.size * 2 + 7
    let journal = try await Journal(at: scratch.path.appending("journal.sqlite"))
    let id = try await journal.destinationID(JournalDestination(endpoint: "http://host/in/", protocolName: "tus"))
    let claims = try await journal.claim(
      (0..<count).map { number in
        JournalIntent(
          source: BytePath("/src/\(number)"), target: "http://host/in/\(number)", path: BytePath("n\(number)"),
          length: 1024, validator: Validator(version: "1"))
      }, destination: id)
    for case .fresh(let id) in claims where id % 3 == 0 { journal.done(id, UploadResult()) }
    for case .fresh(let id) in claims where id % 3 == 1 { journal.failed(id, "409") }
    try await journal.flush()
    let (text, json) = try await shown(status(of: journal, showsAll: showsAll), journal)
    let (done, failed) = (count / 3, (count + 2) / 3)
    #expect(text.contains("  failed: \(Quantity.grouped(failed)) files, 0 B of"))
    #expect(text.contains("and \(failed - 20) more: 'fullbore status --all'") == !showsAll)
    func names(in text: String) -> [String] {
      text.split { $0 == " " || $0 == "\"" }.map(String.init).filter { $0.hasPrefix("n") && Int($0.dropFirst()) != nil }
    }
    #expect(names(in: text).count == (showsAll ? count : 40))
    #expect(Set(names(in: text)).count == (showsAll ? count : 40))
    #expect(names(in: json).count == (showsAll ? count : count - done))
    #expect(Set(names(in: json)).count == names(in: json).count)
    let notes = Notes()
    let walk = ResumeWalk(try await JournalPages(journal), notes, PushCounters())
    #expect(await walk.next() == nil, "their sources are gone")
    #expect(await walk.failure == nil)
    #expect(notes.failed.count == count - done && Set(notes.failed).count == count - done)
    await journal.close()
  }

  @Test func programsSeeNamesAsBytes() async throws {
    let (status, journal) = try await status(showsAll: true)
    let (_, json) = try await shown(status, journal)
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

  @Test func answersOfServersReplaceTheOffsetsOfTheJournal() async throws {
    var (status, journal) = try await status(showsAll: false)
    status.answers = [2: .holds(512, until: nil), 3: .gone]
    var (text, json) = try await shown(status, journal)
    #expect(text.contains("the server holds 512 B of 1.00 KiB"))
    #expect(text.contains("the server has dropped it: 1.00 KiB go again"))
    #expect(json.contains(#""held":512"#))
    status.answers = [2: .failed("the host is not there")]
    (text, json) = try await shown(status, journal)
    #expect(text.contains("        not asked: the host is not there\n"))
  }

  @Test(
    arguments: [
      (-86_400, "just now"), (0, "just now"), (59, "just now"), (60, "1 min ago"), (7199, "1 h ago"),
      (90_000, "25 h ago"),
      (172_800, "2 days ago"), (Int64.max, "106,751,991,167,300 days ago"),
    ] as [(Int64, String)])
  func agesAreShownInOneUnit(_ seconds: Int64, _ text: String) {
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
