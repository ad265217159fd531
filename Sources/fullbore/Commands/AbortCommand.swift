import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Deletes unfinished uploads on their servers, then removes them from the journal.
struct AbortCommand: Command {
  static let declaration = CommandDeclaration(
    name: "abort", synopsis: "abort [ID... | --all | --unread | --orphans s3://BUCKET/PREFIX]",
    summary: "delete unfinished uploads, here and on the server",
    options: [
      .flag("all", "every unfinished upload"),
      .flag("unread", "notes of pushes that ended before all their files were known; deletes no file"),
      .flag("expired", "those that their servers have said to keep no longer than until now, and do not keep"),
      .value("orphans", "PLACE", "at s3://bucket/prefix: uploads in parts that nobody finished, whoever began them"),
      .value("older-than", "DURATION", "of the orphans only those begun so long ago, like 24h"),
      .flag("dry-run", short: "n", "only say which orphans there are"),
      .flag("forget", "here only, where a server cannot be asked or refuses: it keeps them until they expire"),
    ] + ConnectionOptions.declared + [journalOption].inGroup(.output),
    examples: [
      .init("abort 17", "give up the upload with this ID, which 'fullbore status' shows"),
      .init("abort --all", "give up all that is unfinished, at every server"),
      .init("abort --orphans s3://bucket/photos --older-than 24h -n", "list parts in a bucket that nobody finished"),
    ],
    notes: """
      --older-than also deletes what 'fullbore serve --to' has stored below PREFIX/.fullbore/ so long ago: the bytes of
      uploads that fill no part. Give no less than its --expire; without --older-than, they stay.

      ID is the number that 'fullbore status' shows. Files that are done stay, here and there; so does what a process is
      just sending. An upload that its server refuses to delete stays in the journal, and the exit status is 1. A tus
      server that offers no deletion at all keeps its uploads until they expire: they are forgotten here, and it is said.
      """)

  /// Which unfinished uploads to delete.
  enum Choice: Sendable, Hashable {
    case ids(Set<Int64>)
    case all
    /// Only listings, no uploads.
    case unread
    case expired
    case orphans(Destination, age: Duration?, isDryRun: Bool)
  }

  let choice: Choice
  let isForgetting: Bool
  let connection: ConnectionOptions
  let journal: BytePath

  init(_ arguments: Arguments) throws(UsageError) {
    var arguments = arguments
    var orphans = arguments.value("orphans")
    if let given = orphans, let (place, url) = try Places.destination(given) {
      orphans = url
      arguments.use(place)
    }
    var ids: Set<Int64> = []
    for operand in arguments.operands {
      guard let id = Int64(operand.description) else {
        throw UsageError("'\(shown(operand.withoutSecrets))': wanted a number, as 'fullbore status' shows them")
      }
      ids.insert(id)
    }
    isForgetting = arguments.flag("forget")
    connection = try ConnectionOptions(arguments)
    journal = try journalPath(arguments)
    if let place = orphans {
      guard ids.isEmpty, !["all", "unread", "expired"].contains(where: { arguments.flag($0) }) else {
        throw UsageError(
          "--orphans asks the server, not the journal: neither IDs nor --all nor --unread nor --expired with it")
      }
      let destination = try Destination(place, connection.s3)
      if destination.s3 == nil { throw UsageError("--orphans '\(shown(place))': wanted s3://bucket/prefix") }
      let age = try arguments.parsed("older-than", wanted: "a duration, like 24h", Quantity.duration)
      choice = .orphans(destination, age: age, isDryRun: arguments.flag("dry-run"))
      return
    }
    var choices: [Choice] = ids.isEmpty ? [] : [.ids(ids)]
    for (name, choice) in [("all", Choice.all), ("unread", .unread), ("expired", .expired)] where arguments.flag(name) {
      choices.append(choice)
    }
    guard let choice = choices.first else { throw UsageError("which? Give IDs, --all, --unread or --expired") }
    if choices.count > 1 { throw UsageError("IDs, --all, --unread, --expired: which of these?") }
    self.choice = choice
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    if case .orphans(let place, let age, let isDryRun) = choice {
      return await interruptible { await abortOrphans(at: place, age, isDryRun) }
    }
    // This command must not create a journal.
    if journal.isMissing {
      tell("there is no journal at \(journal)")
      if case .ids = choice { return .failed }
      return .ok
    }
    return await interruptible { await abort() }
  }

  private func abort() async -> ExitStatus {
    do throws(UploadError) {
      let journal = try await openJournal(journal, tell)
      do throws(UploadError) {
        let status = try await abort(in: journal)
        await journal.close()
        return status
      } catch {
        let error = await completed(error, journal)
        await journal.close()
        throw error
      }
    } catch {
      tell(error.message)
      return ExitStatus(error.side)
    }
  }

  private func abortOrphans(at place: Destination, _ age: Duration?, _ isDryRun: Bool) async -> ExitStatus {
    do throws(UploadError) {
      var known: [String: String] = [:]
      if !journal.isMissing {
        let journal = try await openJournal(journal, tell)
        try await unfinishedPages(in: journal).read { page in
          let lost = await LostSource.find(page)
          for entry in page {
            guard let id = entry.session?.state["id"] else { continue }
            known[id] =
              lost[entry.id].map { "\($0.complaint): \($0.remedy), or 'fullbore abort \(entry.id)' deletes it" }
              ?? "'fullbore resume' goes on with it"
          }
          return true
        }
        await journal.close()
      }
      return try await AbortOrphans(
        place: place, connection: connection, age: age, isDryRun: isDryRun, known: known
      ).run()
    } catch {
      tell(error.advised)
      return ExitStatus(error.side)
    }
  }

  private func abort(in journal: Journal) async throws(UploadError) -> ExitStatus {
    var status = ExitStatus.ok
    let unread = choice == .all || choice == .unread ? try await unreadListings(in: journal) : []
    var pages = try await unfinishedPages(in: journal)
    let now = Int64(time(nil))
    var (isEmpty, chosen) = (true, Chosen())
    try await pages.read { page in
      isEmpty = false
      for entry in page where choice.contains(entry, now: now) { chosen.add(entry) }
      return true
    }
    if case .ids(let ids) = choice {
      for id in ids.subtracting(chosen.ids).sorted() {
        tell("\(id): no unfinished upload has this number; see 'fullbore status'")
        status = .failed
      }
    }
    do throws(UsageError) {
      try connection.check(isForAll: Array(chosen.asked.values), "Give the IDs of one server's uploads")
    } catch {
      tell(error.message)
      return .usage
    }
    if isEmpty && unread.isEmpty || chosen.ids.isEmpty && choice == .expired || unread.isEmpty && choice == .unread {
      Console.output.write("\(choice.none).\n")
    }
    for id in chosen.destinations.sorted() {
      pages.destinations = [id]
      let ended = try await abort(pages, among: chosen.ids)
      if ended == .interrupted { return ended }
      if status == .ok { status = ended }
    }
    try await endListings(unread.map(\.id), in: journal)
    for listing in unread { Console.output.write("\(shown(listing.complaint)): given up\n") }
    return status
  }

  /// What is aborted. The entries themselves may be too many for memory.
  private struct Chosen {
    var ids: Set<Int64> = []
    var destinations: Set<Int64> = []
    /// The destinations whose servers are asked, by their ids.
    var asked: [Int64: JournalDestination] = [:]

    mutating func add(_ entry: JournalEntry) {
      ids.insert(entry.id)
      destinations.insert(entry.destinationID)
      if entry.session != nil { asked[entry.destinationID] = entry.destination }
    }
  }

  /// Aborts the chosen entries of one destination.
  private func abort(_ pages: JournalPages, among ids: Set<Int64>) async throws(UploadError) -> ExitStatus {
    var (status, server): (ExitStatus, KnownServer?) = (.ok, nil)
    try await pages.read { page throws(UploadError) in
      let entries = page.filter { ids.contains($0.id) }
      let (ended, goesOn) = try await abort(entries, pages.journal, &server)
      if status == .ok || !goesOn { status = ended }
      return goesOn
    }
    return status
  }

  /// Aborts entries of one destination. Entries without a session are only removed from the journal and need no
  /// connection. `goesOn`: the server can be asked about other entries.
  private func abort(
    _ entries: [JournalEntry], _ journal: Journal, _ server: inout KnownServer?
  ) async throws(UploadError) -> (status: ExitStatus, goesOn: Bool) {
    var status = ExitStatus.ok
    for entry in entries {
      guard let entry = try await claim(entry, in: journal) else {
        status = .failed
        continue
      }
      var how = "nothing was there yet"
      if let session = entry.sessionWithParts {
        do throws(UploadError) {
          if server == nil { server = try await KnownServer(entry.destination, connection) }
          if choice == .expired, let server, try await server.keeps(session, now: Int64(time(nil))) {
            journal.released(entry.id)
            Console.output.write(
              "\(entry.id)  \(shown(entry.intent.path))  stays: \(shown(entry.destination.endpoint)) still keeps it\n")
            continue
          }
          // The temporary files of WebDAV are deleted even if the file is complete.
          if !entry.hasTemporaryFiles, await server?.hasWhole(session) == true {
            how = entry.whatStays
          } else {
            try await server?.abort(session)
            how = entry.whatAbortDeletes
          }
        } catch {
          guard isForgetting && error.side != .cancelled || error.cause is KeepsUploads else {
            journal.released(entry.id)
            let isKept = error.side == .file
            tell("\(entry.id)  \(shown(entry.intent.path)): \(error.message)\(isKept ? entry.keptAdvice : "")")
            if isKept {
              status = .failed
              continue
            }
            if error.side == .destination { tell("--forget gives up here what this server cannot be asked to delete") }
            return (ExitStatus(error.side), false)
          }
          how = "kept by \(entry.destination.endpoint) until it expires: \(error.message)"
        }
      }
      do { try await journal.remove([entry.id]) } catch { throw UploadError(journal: error) }
      Console.output.write("\(entry.id)  \(shown(entry.intent.path))  given up; \(shown(how))\n")
      Console.output.flush()
    }
    return (status, true)
  }

  /// Claims the entry, so that no other process starts to send it. nil: another process has claimed it, or it is done;
  /// the user is told.
  private func claim(_ entry: JournalEntry, in journal: Journal) async throws(UploadError) -> JournalEntry? {
    let claim: JournalClaim?
    do { claim = try await journal.claim(entries: [entry.id]).first } catch { throw UploadError(journal: error) }
    switch claim {
    case .resume(let entry), .unsure(let entry): return entry
    case .busy(let owner): tell("\(entry.id): process \(owner.pid) is sending it; end that one first")
    case .done, .fresh, .replaced, nil: tell("\(entry.id): it is done by now, and stays")
    }
    return nil
  }

  private func tell(_ message: String) { Console.error.write("fullbore abort: \(shown(message))\n") }
}

extension JournalEntry {
  fileprivate var keptAdvice: String {
    let why = hasTemporaryFiles ? "" : "The server keeps the upload until it expires; "
    return ". \(why)--forget gives it up here all the same"
  }
}

extension ExitStatus {
  /// The exit status for an error, according to who has to act.
  fileprivate init(_ side: UploadError.Side) {
    switch side {
    case .cancelled: self = .interrupted
    case .destination: self = .unreachable
    case .source, .file, .journal: self = .failed
    }
  }
}
