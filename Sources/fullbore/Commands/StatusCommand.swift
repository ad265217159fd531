import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Prints what the journal contains, as text or JSON.
struct StatusCommand: Command {
  static let declaration = CommandDeclaration(
    name: "status", synopsis: "status [DESTINATION]",
    summary: "what the journal knows: done, under way, failed (with the reason)",
    options: [
      .flag("all", "every file, also what is done"),
      .value("only", "failed|running|interrupted", "only these of the unfinished files"),
      .flag("check", "ask the servers how much they hold of what is unfinished and not under way"),
      .flag("json", "one JSON object a line: destination, file, reading, unread"),
    ] + ConnectionOptions.declared + [sharedJournalOption].inGroup(.output),
    examples: [
      .init("status", "what is under way, interrupted or failed, with its ID, and how many files are done"),
      .init("status nas: --all", "every file that went to the place 'nas', also what is done"),
      .init("status --only failed", "the files that failed, and why"),
    ],
    notes: """
      'fullbore resume' finishes what is interrupted or failed; 'fullbore abort ID' gives it up, as is needed for what
      cannot be read again: a file that is gone, or standard input. Of a card that is not plugged in, all is gone.
      DESTINATION is a URL as it is shown here, s3://bucket/prefix, gs://bucket/prefix, or a place: then only what goes
      there, or below it, is told and asked for.
      "up to" is how far bytes were sent, "confirmed" what the server last said that it holds; what it holds
      now, --check asks. It does not ask about files that a process is sending just now.
      With --journal postgres://USER@HOST/DB, the queue of several machines, it tells sums and the files that have failed.
      Exit status: 0 the journal was read, also where files are unfinished or have failed; 1 it cannot be read; 2 wrong
      usage; 3 with --check, a server could not be asked.
      """, takesPlaces: true)

  let choice: DestinationChoice
  /// nil: there is a queue.
  let journal: BytePath?
  /// The URL of the queue that several machines share; nil: there is none. It may have a password.
  let queue: String?
  let showsAll: Bool
  /// Unfinished files of other states are not shown; nil: all are.
  let only: JournalStatus.Standing?
  let isJSON: Bool
  let isAsking: Bool
  let connection: ConnectionOptions

  init(_ arguments: Arguments) throws(UsageError) {
    // The same word means something else to a push, for which a place may have it.
    isAsking = arguments.flag("check")
    let arguments = try arguments.withPlace()
    choice = try DestinationChoice(arguments.operands)
    queue = try sharedQueue(arguments)
    journal = queue == nil ? try journalPath(arguments) : nil
    showsAll = arguments.flag("all")
    only = try arguments.parsed("only", wanted: "failed, running or interrupted") { JournalStatus.Standing(option: $0) }
    isJSON = arguments.flag("json")
    connection = try ConnectionOptions(arguments)
    if queue != nil, isAsking || only != nil && only != .failed {
      throw UsageError(
        "--check and --only running|interrupted cannot be used with --journal postgres://…: the queue is told by its sums"
      )
    }
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    if let queue { return await tell(sharing: queue) }
    guard let journal else { return .usage }
    // This command must not create a journal.
    if journal.isMissing {
      do { try choice.check(isAmong: []) } catch { return refuse(error) }
      if !isJSON { Console.output.write("There is no journal at \(shown(journal)): nothing was pushed yet.\n") }
      return .ok
    }
    do throws(JournalError) {
      let journal = try await Journal(reading: journal)
      let known = try await journal.destinations()
      do { try choice.check(isAmong: known) } catch {
        await journal.close()
        return refuse(error)
      }
      let listings = try await journal.listings().filter { choice.contains($0.destination) }
      let sums = try await journal.summary().filter { choice.contains($0.destination) }
      var status = JournalStatus(sums: sums, listings: listings, showsAll: showsAll, now: Int64(time(nil)))
      let pages = try await JournalPages(journal, at: Set(sums.map(\.destinationID)))
      status.only = only
      try await pages.forEach { page in page.forEach { status.add($0) } }
      status.lost = await LostSource.find(status.named)
      if isAsking {
        do throws(UsageError) {
          try connection.check(
            isForAll: status.named.filter { $0.session != nil }.map(\.destination),
            "Name one: 'fullbore status --check URL'")
        } catch {
          await journal.close()
          return refuse(error)
        }
        let unfinished = status.named
        status.answers = await interruptible { await ask(unfinished) }
      }
      if isJSON {
        try await status.writeJSON(pages) { Console.output.write($0) }
      } else {
        try await status.write(pages) { Console.output.write($0) }
      }
      await journal.close()
      let couldAsk = status.answers.values.allSatisfy { if case .failed = $0 { false } else { true } }
      return couldAsk ? .ok : .unreachable
    } catch {
      var advice = ""
      if error.isDamaged {
        advice =
          Journal.isKeptAside(at: journal)
          ? ". The next push keeps it aside and begins a new one"
          : ". It may be no journal, so a push does nothing with it; --journal FILE names another place"
      }
      Console.error.write("fullbore status: \(shown(error.message + advice))\n")
      return .failed
    }
  }

  func refuse(_ error: UsageError) -> ExitStatus {
    Console.error.write("fullbore status: \(shown(error.message))\n")
    return .usage
  }

  /// Sends one request for each upload that has a session. A query may make the server end the request that is sending
  /// the upload, so uploads of live processes are not queried.
  private func ask(_ entries: [JournalEntry]) async -> [Int64: ServerAnswer] {
    var answers: [Int64: ServerAnswer] = [:]
    let quiet = entries.filter { $0.session != nil && $0.owner == nil }
    for (_, group) in Dictionary(grouping: quiet, by: \.destinationID) {
      do throws(UploadError) {
        let server = try await KnownServer(group[0].destination, connection)
        for entry in group {
          guard let session = entry.sessionToAsk else { continue }
          do throws(UploadError) {
            answers[entry.id] = ServerAnswer(try await server.held(by: session), of: entry)
          } catch {
            answers[entry.id] = error.recovery == .restart ? .gone : .failed(error.message)
          }
        }
      } catch {
        for entry in group { answers[entry.id] = .failed(error.message) }
      }
    }
    return answers
  }
}

/// The server's response about an unfinished upload.
enum ServerAnswer: Sendable, Hashable {
  /// Bytes, and when they expire in seconds since 1970; nil: the server did not say.
  case holds(Int64, until: Int64?)
  case gone
  case failed(String)

  init(_ held: Held, of entry: JournalEntry) {
    switch held {
    case .upTo(let offset, let session): self = .holds(offset, until: session.expires)
    case .parts(let parts, let session): self = .holds(parts.lazy.map(\.held).clampedSum, until: session.expires)
    case .finished: self = .holds(entry.intent.length ?? entry.reached, until: nil)
    }
  }
}

extension JournalEntry {
  /// Offset after the last byte that was sent, as far as is known; the server may have received less.
  var reached: Int64 { max(acknowledged, sent.map(\.end).max() ?? 0) }
}
