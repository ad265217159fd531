import BlobUpload
import Blobs
import Platform

/// Lists what went where and when, from the journal, or removes it from there. No server is asked.
struct HistoryCommand: Command {
  static let declaration = CommandDeclaration(
    name: "history", synopsis: "history [NAME...]",
    summary: "what was sent where, and when, as the journal has it",
    options: [
      .value("since", "TIME", "only what was sent since then: 7d, 12h, or a day like 2026-11-27"),
      .value("before", "TIME", "only what was sent before then"),
      .value("to", "DESTINATION", "only what went there or below: a URL as 'status' shows it, or a place like nas:"),
      .flag("forget", "remove these lines from the journal: the next push asks for these files again, or sends them"),
      .flag("json", "one JSON object a line"),
      journalOption,
    ],
    examples: [
      .init("history --since 7d --to nas:", "what the place 'nas' got in the last week"),
      .init("history IMG_0001.JPG", "where the files of this name went, and when"),
      .init("history --forget --to nas:", "forget what is at a server whose disk was lost, so that all is sent again"),
    ],
    notes: """
      NAME is a pattern as that of 'push --include', compared with a source's name and its path; of rows, URLs and standard
      input also with those that they have at the destination. The journal has one line for each file and destination: when
      it was last sent in full. It does not know what was deleted or changed at the
      destination since: 'push --check' asks. --forget deletes no file, here or there. Days and times are those of this
      machine's time zone; those of --json are
      seconds since 1970. Exit status: 0 the journal was read; 1 it cannot be read; 2 wrong usage.
      """)

  let choice: DestinationChoice
  let names: [Glob]
  /// Seconds since 1970; nil: from the beginning.
  let since: Int64?
  /// Seconds since 1970; nil: to the end.
  let before: Int64?
  let forgets: Bool
  let isJSON: Bool
  let journal: BytePath

  init(_ arguments: Arguments) throws(UsageError) {
    let destination = try arguments.value("to").map { (given) throws(UsageError) in
      try Places.destination(given)?.url ?? given
    }
    choice = try DestinationChoice(destination.map { [$0] } ?? [])
    names = arguments.operands.map { Glob($0) }
    if let bad = names.first(where: { $0.problem != nil }) {
      throw UsageError("'\(shown(bad.pattern))': \(bad.problem ?? "")")
    }
    since = try Self.time("since", arguments)
    before = try Self.time("before", arguments)
    forgets = arguments.flag("forget")
    if forgets, names.isEmpty, destination == nil, since == nil, before == nil {
      throw UsageError("--forget: of which files? NAME, --to, --since or --before say it")
    }
    isJSON = arguments.flag("json")
    journal = try journalPath(arguments)
  }

  private static func time(_ option: String, _ arguments: Arguments) throws(UsageError) -> Int64? {
    try arguments.parsed(option, wanted: "a duration like 7d or 12h, or a day like 2026-11-27") { text in
      Quantity.duration(text).map { Int64(Platform.time(nil)).subtractingClamped($0.components.seconds) }
        ?? beginning(ofDay: text)
    }
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    // This command must not create a journal.
    if journal.isMissing {
      if !isJSON { Console.output.write("There is no journal at \(shown(journal)): nothing was pushed yet.\n") }
      return .ok
    }
    do throws(JournalError) {
      let journal = forgets ? try await Journal(at: journal) : try await Journal(reading: journal)
      let known = try await journal.destinations()
      do throws(UsageError) { try choice.check(isAmong: known) } catch {
        await journal.close()
        return refuse(error.message, .usage)
      }
      var pages = try await JournalPages(journal)
      pages.isDone = true
      var (count, bytes): (Int, Int64) = (0, 0)
      var isBusy = false
      try await pages.forEach { (page) async throws(JournalError) in
        var chosen = page.filter(isChosen)
        if forgets {
          let forgotten = try await forget(chosen, in: journal)
          isBusy = isBusy || forgotten.count < chosen.count
          chosen = forgotten
        }
        for entry in chosen {
          Console.output.write((isJSON ? json(entry) : line(entry)) + "\n")
          count += 1
          bytes = bytes.addingClamped(entry.intent.length ?? entry.acknowledged)
        }
      }
      let done = forgets ? " forgotten" : ""
      if !isJSON { Console.output.write("\(Quantity.plural(count, "file")), \(Quantity.text(bytes: bytes))\(done).\n") }
      await journal.close()
      return isBusy ? .failed : .ok
    } catch {
      return refuse(error.message, .failed)
    }
  }

  /// Removes the entries, except those that another process uses. Returns the removed ones.
  private func forget(
    _ entries: [JournalEntry], in journal: Journal
  ) async throws(JournalError) -> [JournalEntry] {
    if entries.isEmpty { return [] }
    var free: [JournalEntry] = []
    for (entry, claim) in zip(entries, try await journal.claim(entries: entries.map(\.id))) {
      if case .done = claim {
        free.append(entry)
      } else {
        Console.error.write(
          "fullbore history: \(shown(entry.intent.source)) is being sent again just now, and is not forgotten\n")
      }
    }
    try await journal.remove(free.map(\.id))
    return free
  }

  private func refuse(_ message: String, _ status: ExitStatus) -> ExitStatus {
    Console.error.write("fullbore history: \(shown(message))\n")
    return status
  }

  private func isChosen(_ entry: JournalEntry) -> Bool {
    if let since, entry.updated < since { return false }
    if let before, entry.updated >= before { return false }
    let source = entry.intent.source
    if !choice.contains(entry.destination) { return false }
    // A pattern has no slash at its beginning, and a path has one.
    let path = BytePath(source.bytes.drop { $0 == UInt8(ascii: "/") })
    if names.isEmpty || names.contains(where: { $0.matches([path], source.name) }) { return true }
    // The identity of a database row or of standard input has no name of its own.
    if source.bytes.first == UInt8(ascii: "/") { return false }
    let arrival = entry.intent.path
    return names.contains { $0.matches([arrival], arrival.name) }
  }

  private func line(_ entry: JournalEntry) -> String {
    let size = entry.intent.length.map { Quantity.text(bytes: $0) } ?? "?"
    let padding = String(repeating: " ", count: max(0, 8 - size.count))
    return
      "\(LocalTime.text(entry.updated, "%Y-%m-%d %H:%M"))  \(padding)\(size)  \(shown(entry.intent.source))  ->  \(shown(entry.intent.target))"
  }

  private func json(_ entry: JournalEntry) -> String {
    var line = JSONLine("sent")
    line.add("time", entry.updated)
    line.add(path: entry.intent.path)
    line.add("source", entry.intent.source.description)
    line.add("endpoint", entry.destination.endpoint)
    line.add("target", entry.intent.target)
    line.add("protocol", entry.destination.protocolName)
    if let length = entry.intent.length { line.add("length", length) }
    line.add("id", entry.id)
    return line.text
  }

  /// The beginning of `2026-11-27` in local time; nil: the text is no day.
  private static func beginning(ofDay text: String) -> Int64? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Int32($0) }
    guard parts.count == 3, let year = parts[0], let month = parts[1], let day = parts[2], 1970...9999 ~= year,
      1...12 ~= month, 1...31 ~= day
    else { return nil }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday, date.tm_isdst) = (year - 1900, month - 1, day, -1)
    let seconds = mktime(&date)
    // The 31st of a shorter month would be a day of the next one.
    return date.tm_mday == day ? Int64(seconds) : nil
  }
}
