import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload
@testable import fullbore

@Suite struct ReportTests {
  let scratch = Scratch()
  let odd = BytePath([0x61, 0xFF, 0x0A])

  func file(_ relative: BytePath, _ length: Int64? = 1024) -> PushedFile {
    PushedFile(path: BytePath("/src").appending(relative), relative: relative, length: length, id: 7)
  }

  /// The lines that a report writes to its output and its errors for a fixed sequence of events.
  func lines(_ make: (Console, Console) -> any PushReport) -> (output: [String], errors: [String]) {
    let (output, errors) = (open("output"), open("errors"))
    let report = make(Console(descriptor: output, limit: 1 << 16), Console(descriptor: errors, limit: 0))
    for name in ["a.jpg", "b.jpg", "c.jpg", odd] { report.started(file(name)) }
    report.finished(file("a.jpg"), how: .sent(bytes: 1024, resumedFrom: 0))
    report.finished(file("b.jpg"), how: .sent(bytes: 24, resumedFrom: 1000))
    report.finished(file("c.jpg"), how: .doneBefore(.journal))
    report.failed(
      file(odd), "409: other bytes are there", UploadError(.giveUp, .file, "PUT: 409", status: 409),
      advice: "Give --overwrite")
    report.failed("/src/gone", "No such file or directory")
    report.leftOut("/src/pipe", reason: "a pipe")
    report.notice("the link is slow")
    report.summary(
      PushSummary(
        files: FileCounts(
          found: 4, foundBytes: 4096, sent: 2, doneBefore: EvidenceCounts(journal: 1), leftOut: 1, failed: 2),
        bytesSent: 1048, bytesAcknowledged: 1024, elapsed: .seconds(2)))
    close(output)
    close(errors)
    func split(_ name: BytePath) -> [String] {
      String(decoding: scratch.content(of: name), as: UTF8.self).split(separator: "\n").map { String($0) }
    }
    return (split("output"), split("errors"))
  }

  func open(_ name: BytePath) -> Int32 { scratch.path.appending(name).withCString { creat($0, 0o644) } }

  @Test func aPipeGetsALinePerFileAndTheSum() {
    let (output, errors) = lines { LineReport($0, errors: $1, PushCounters(), OutputOptions()) }
    #expect(
      output == [
        "a.jpg  1.00 KiB", "b.jpg  1.00 KiB  resumed at byte 1000",
        "2 files sent, 1.02 KiB in 2.00 s (524 B/s); 1 done before, not asked; 1 left out; 2 failed",
      ])
    #expect(
      errors == [
        "fullbore: a\u{FFFD}\\n: 409: other bytes are there. Give --overwrite",
        "fullbore: /src/gone: No such file or directory", "fullbore: the link is slow",
      ])
  }

  @Test func linesSayWhichOfSeveralDestinationsTheyAreAbout() {
    let (output, errors) = (open("output"), open("errors"))
    let destinations = ["nas", "cloud"].map { ReportedDestination(title: $0, url: $0, counters: PushCounters()) }
    let counters = PushCounters(of: destinations.map(\.counters))
    let whole = LineReport(
      Console(descriptor: output, limit: 1 << 16), errors: Console(descriptor: errors, limit: 0), counters,
      OutputOptions(), of: destinations)
    let (nas, cloud) = (LineReport(of: destinations[0], in: whole), LineReport(of: destinations[1], in: whole))
    nas.finished(file("a.jpg"), how: .sent(bytes: 1024, resumedFrom: 0))
    cloud.failed(file("a.jpg"), "409", nil, advice: nil)
    whole.failed("/src/gone", "No such file or directory")
    for length: Int64 in [1024, 2048] { counters.found(length: length) }
    destinations[0].counters.finished(file("a.jpg"), how: .alreadyThere)
    destinations[1].counters.failed(length: 1024)
    var totals = ProgressFigures.Lines(counters, destinations)
    #expect(
      totals.lines(running: [0, 0], at: 0) == [
        "nas: 1 of 2+ files, 1.00 KiB of 3.00 KiB+", "cloud: 0 of 2+ files, 1.00 KiB of 3.00 KiB+, 1 failed",
      ])
    let parts = destinations.map {
      PushSummary.Part(title: $0.title, url: $0.url, summary: $0.counters.summary(elapsed: .zero))
    }
    let sum = counters.summary(elapsed: .zero).adding(parts)
    #expect(sum.files.found == 2 && sum.files.alreadyThere == 1 && sum.files.failed == 1 && sum.filesNotTried == 2)
    whole.summary(sum)
    close(output)
    close(errors)
    #expect(
      String(decoding: scratch.content(of: "output"), as: UTF8.self) == """
        nas: a.jpg  1.00 KiB
        nas: 0 files sent, 0 B in 0.00 s; 1 already there
        cloud: 0 files sent, 0 B in 0.00 s; 1 failed

        """)
    #expect(
      String(decoding: scratch.content(of: "errors"), as: UTF8.self)
        == "fullbore: cloud: a.jpg: 409\nfullbore: /src/gone: No such file or directory\n")
    var film = file("film.mov", 1 << 20)
    film.destination = "cloud"
    #expect(ProgressBoard.line(for: film, width: 80, TerminalStyle()).hasPrefix("  cloud: film.mov "))
  }

  /// Files were refused one by one, and the last refusal ends the push. Files that were being sent at that time are not
  /// reported again.
  @Test(arguments: [403, 404, 507]) func theFileThatEndsThePushIsNamedAndCounted(_ status: Int) throws {
    let errors = open("errors")
    let counters = PushCounters()
    let report = LineReport(
      Console(descriptor: errors, limit: 0), errors: Console(descriptor: errors, limit: 0), PushCounters(),
      OutputOptions())
    let observer = PushObserver(report: report, counters: counters)
    let url = try #require(HTTPURL("http://media.example/in/"))
    let refusals: [(String, UploadError.Side)] = [
      ("a", .file), ("b", .file), ("c", .destination), ("d", .destination),
    ]
    var last: UploadError?
    for (name, side) in refusals {
      let source = PatternSource(length: 1000)
      let error = UploadError(.giveUp, side, "PUT \(name): \(status)", status: status)
      let target = UploadTarget(endpoint: url, url: url, path: BytePath(name), length: 1000, contentType: "video/mp4")
      let item = UploadItem(source: source, info: source.info, identity: BytePath("/src/\(name)"), target: target)
      observer.ended(item, nil, .failed(error))
      last = error
    }
    close(errors)
    let named = String(decoding: scratch.content(of: "errors"), as: UTF8.self).split(separator: "\n").map {
      $0.dropFirst("fullbore: ".count).prefix(1)
    }
    #expect(named == ["a", "b", "c"])
    #expect(counters.files.failed == 3)
    #expect(observer.hasTold(try #require(last)))
  }

  /// The only file was refused, and then the same refusal ends the push.
  @Test(arguments: [403, 404, 507]) func theRefusalOfTheOnlyFileIsSaidOnce(_ status: Int) throws {
    let errors = open("errors")
    let report = LineReport(
      Console(descriptor: errors, limit: 0), errors: Console(descriptor: errors, limit: 0), PushCounters(),
      OutputOptions())
    let observer = PushObserver(report: report, counters: PushCounters())
    let url = try #require(HTTPURL("http://media.example/in/"))
    let source = PatternSource(length: 1000)
    let item = UploadItem(
      source: source, info: source.info, identity: "/src/a",
      target: UploadTarget(endpoint: url, url: url, path: "a", length: 1000))
    observer.ended(item, nil, .failed(UploadError(.giveUp, .file, "PUT a: \(status)", status: status)))
    close(errors)
    #expect(observer.hasTold(UploadError(.giveUp, .destination, "PUT a: \(status)", status: status)))
    #expect(!observer.hasTold(UploadError(.giveUp, .destination, "PUT a: 401", status: 401)))
  }

  @Test func theSummarySaysWhatWasAsked() {
    let summary = PushSummary(
      files: FileCounts(
        found: 10, doneBefore: EvidenceCounts(journal: 4, length: 3, digest: 2, bytes: 1), hidden: 1200))
    #expect(
      summary.text.hasSuffix(
        "; 4 done before, not asked; 2 done before, compared by digest; 1 done before, read back and compared; "
          + "3 done before, compared by length (--verify reads back); 1,200 hidden left out (--hidden sends them)"),
      "\(summary.text)")
  }

  /// A long upload to a log would otherwise show nothing for hours.
  @Test(arguments: [false, true]) func aLogGetsTheTotalsNowAndThen(_ isQuiet: Bool) async throws {
    let errors = open("errors")
    let counters = PushCounters()
    let report = LineReport(
      Console(descriptor: errors, limit: 0), errors: Console(descriptor: errors, limit: 0), counters,
      OutputOptions(isQuiet: isQuiet), interval: .milliseconds(300))
    let film = PushedFile(
      path: "/src/a.mov", relative: "a.mov", length: 100 << 20, progress: UploadProgress(totals: counters.bytes))
    counters.found(length: film.length)
    counters.large.began(film)
    film.progress.advance(by: 25 << 20)
    func lines() -> [Substring] {
      String(decoding: scratch.content(of: "errors"), as: UTF8.self).split(separator: "\n")
    }
    try await Task.sleep(for: .milliseconds(isQuiet ? 800 : 300))
    for _ in 0..<100 where lines().isEmpty && !isQuiet { try await Task.sleep(for: .milliseconds(100)) }
    // Nothing has moved since, so nothing is said.
    try await Task.sleep(for: .milliseconds(800))
    report.summary(PushSummary())
    close(errors)
    let said = lines().filter { $0.hasPrefix("fullbore: 0 of 1+ files, 25.0 MiB of 100 MiB+, ") }
    #expect(said.count == (isQuiet ? 0 : 1), "\(lines())")
  }

  @Test func quietSaysOnlyWhatFailed() {
    let (output, errors) = lines { LineReport($0, errors: $1, PushCounters(), OutputOptions(isQuiet: true)) }
    #expect(output == [] && errors.count == 2)
  }

  @Test func verboseNamesAlsoWhatNeededNothing() {
    let (output, _) = lines { LineReport($0, errors: $1, PushCounters(), OutputOptions(isVerbose: true)) }
    #expect(output.contains("c.jpg  1.00 KiB  done before, not asked"))
    #expect(output.contains("/src/pipe  left out: a pipe"))
  }

  @Test func programsGetOneObjectALine() {
    let (all, errors) = lines { output, _ in JSONReport(output, PushCounters(), OutputOptions(isJSON: true)) }
    let output = all.filter { !$0.contains("\"event\":\"progress\"") }
    #expect(errors == [])
    #expect(output.count == 12)
    let first = #"{"event":"start","path":"a.jpg","source":"/src/a.jpg","length":1024,"id":7,"time":"#
    #expect(output[0].hasPrefix(first))
    #expect(output[3].contains(#""path":"a�\n","path_bytes":"61ff0a""#))
    #expect(output[5].contains(#","how":"sent","sent":24,"resumed_from":1000,"time":"#))
    #expect(output[7].contains(#","kind":"file","status":409,"time":"#))
    let gone = #"{"event":"failed","path":"/src/gone","message":"No such file or directory","kind":"source","time":"#
    #expect(output[8].hasPrefix(gone))
    #expect(
      output[11].hasPrefix(
        #"{"event":"summary","files_found":4,"bytes_found":4096,"files_sent":2,"bytes_sent":1048,"bytes_acknowledged":1024"#
      ))
  }

  @Test func aTerminalIsDrawnOverAndKeepsTheFailures() {
    let (output, _) = lines { output, _ in TerminalReport(output, PushCounters(), OutputOptions(), TerminalStyle()) }
    #expect(
      output.contains { $0.contains("failed\u{1B}[0m: a\u{FFFD}\\n: 409") && $0.hasSuffix("Give --overwrite\u{1B}[K") })
    #expect(output.contains { $0.hasPrefix("2 files sent") })
    #expect(!output.contains { $0.contains("done before, not asked\u{1B}") && $0.contains("c.jpg") })
  }

  @Test(arguments: [
    ("", #""""#), ("a\"b\\c", #""a\"b\\c""#), ("\n\r\t", #""\n\r\t""#), ("\u{0}\u{1F}\u{7F}", #""\u0000\u001f\u007f""#),
    ("ü😀\u{2028}", "\"ü😀\\u2028\""),
  ])
  func textIsQuotedAsJSONWantsIt(_ text: String, _ quoted: String) {
    #expect(JSONText.quoted(text) == quoted)
  }

  @Test func controlCharactersNeverReachATerminal() {
    #expect(shown("a\u{1B}[2Jb\n\u{9B}\u{202E}") == "a\\x1b[2Jb\\n\\x9b\\x202e")
    #expect(shown("Möwe 😀") == "Möwe 😀")
  }

  @Test func speedIsThatOfTheLastSeconds() {
    var speed = Speed()
    for second in 0...20 { speed.add(second < 10 ? Int64(second) * 100 : 1000, at: Double(second)) }
    #expect(speed.bytesPerSecond == 0)
    speed.add(7000, at: 21)
    #expect(speed.bytesPerSecond == 1000 || speed.bytesPerSecond == 1200)
  }

  @Test func aReaderWhoLeftEndsNothing() {
    let ends = makePipe()
    close(ends.read)
    signal(SIGPIPE, SIG_IGN)
    let console = Console(descriptor: ends.write, limit: 0)
    console.write("one")
    console.write("two")
    close(ends.write)
  }
}
