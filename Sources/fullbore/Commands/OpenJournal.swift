import BlobUpload
import Blobs
import Platform

/// Opens the journal, or throws an error with advice. A damaged journal is moved aside, which `tell` reports.
func openJournal(_ path: BytePath, _ tell: (String) -> Void) async throws(UploadError) -> Journal {
  do {
    let (journal, damaged) = try await Journal.opened(at: path)
    if let damaged { tell("\(keptMessage(path, damaged)), and a new one is begun") }
    return journal
  } catch {
    var error = UploadError(journal: error)
    error.message += ". Nothing was done; --journal FILE names another place"
    throw error
  }
}

/// Completes an error for the user. An error of the journal ends its use: it is closed, and a damaged one is moved
/// aside, so that the next run creates a new one.
func completed(_ error: UploadError, _ journal: Journal) async -> UploadError {
  guard error.side == .journal, !error.isOfLostClaims else { return error }
  var error = error
  if (error.cause as? JournalError)?.isDamaged == true, let damaged = await journal.keptAside() {
    error.message += ". \(keptMessage(journal.path, damaged)): run it again"
  } else {
    await journal.close()
    error.message += ". Nothing is lost: run it again once this is mended, or with --journal FILE for another place"
  }
  return error
}

private func keptMessage(_ path: BytePath, _ aside: BytePath) -> String {
  "the journal \(path) is damaged: it is kept as \(aside)"
}

/// The destinations at which files are in no index of sealed names.
func unindexed(in journal: Journal) async throws(UploadError) -> [Int64: JournalDestination] {
  do { return try await journal.sealedNames.destinations() } catch { throw UploadError(journal: error) }
}

func number(of destination: JournalDestination, in journal: Journal) async throws(UploadError) -> Int64 {
  do { return try await journal.destinationID(destination) } catch { throw UploadError(journal: error) }
}

/// Entries of the journal, read page by page because there may be millions of them.
struct JournalPages: Sendable {
  static let size = 500
  let journal: Journal
  /// The entries that are done; otherwise those that are not.
  var isDone = false
  /// Entries with higher ids were written later and are left out.
  let through: Int64
  /// The ids of the destinations of the entries; nil: all.
  var destinations: Set<Int64>?

  /// The entries that exist now, and are not done.
  init(_ journal: Journal, at destinations: Set<Int64>? = nil) async throws(JournalError) {
    self.journal = journal
    self.destinations = destinations
    through = try await journal.lastID()
  }

  /// The next page; empty: there are no more. `last`: the last entry of the page before; nil: this is the first page.
  func next(after last: JournalEntry?) async throws(JournalError) -> [JournalEntry] {
    let page =
      isDone
      ? try await journal.finished(after: last?.id ?? 0, limit: Self.size, at: destinations)
      : try await journal.unfinished(after: last?.id ?? 0, limit: Self.size, at: destinations)
    return page.filter { $0.id <= through }
  }

  /// Calls `take` with each page.
  func forEach(
    _ take: ([JournalEntry]) async throws(JournalError) -> Void
  ) async throws(JournalError) {
    var page = try await next(after: nil)
    while !page.isEmpty {
      try await take(page)
      page = try await next(after: page.last)
    }
  }
}

func unfinishedPages(
  in journal: Journal, at destinations: Set<Int64>? = nil
) async throws(UploadError) -> JournalPages {
  do { return try await JournalPages(journal, at: destinations) } catch { throw UploadError(journal: error) }
}

extension JournalPages {
  /// Calls `take` with each page, until it returns false.
  func read(_ take: ([JournalEntry]) async throws(UploadError) -> Bool) async throws(UploadError) {
    var last: JournalEntry?
    while true {
      let page: [JournalEntry]
      do { page = try await next(after: last) } catch { throw UploadError(journal: error) }
      if page.isEmpty { return }
      if try await !take(page) { return }
      last = page.last
    }
  }
}

/// Records that a push starts, before any request.
func beginListing(_ options: PushOptions, in journal: Journal) async throws(UploadError) -> BegunListing {
  let noted = options.destinationBeforeAnswer
  do {
    let followsUnread = try await journal.listings().contains {
      $0.owner == nil && $0.sources == options.given && $0.destination.isFollowed(by: noted)
    }
    let id = try await journal.beginListing(options.given, destination: try await journal.destinationID(noted))
    return BegunListing(id: id, followsUnread: followsUnread)
  } catch {
    throw await completed(UploadError(journal: error), journal)
  }
}

/// A push that the journal knows to have begun.
struct BegunListing: Sendable {
  let id: Int64
  /// An earlier push of the same sources to the same URL ended before all its files were known.
  let followsUnread: Bool

  /// `error` ends the push. A push that can never succeed is forgotten, because running it again would be in vain.
  func end(after error: UploadError, in journal: Journal) async throws(UploadError) {
    if error.isWrongDestination { try await endListings([id], in: journal) }
  }
}

/// Records that every file of a push has its own entry, or that the user gives the listings up.
func endListings(_ ids: [Int64], in journal: Journal) async throws(UploadError) {
  do { try await journal.endListings(ids) } catch { throw UploadError(journal: error) }
}

func destinations(in journal: Journal) async throws(UploadError) -> [JournalDestination] {
  do { return try await journal.destinations() } catch { throw UploadError(journal: error) }
}

/// Pushes that ended before each of their files had an entry, without those that are running.
func unreadListings(in journal: Journal) async throws(UploadError) -> [JournalListing] {
  do { return try await journal.listings().filter { $0.owner == nil } } catch { throw UploadError(journal: error) }
}

extension JournalEntry {
  /// What the user can do about an entry in state `.refused`.
  var refusalRemedy: String {
    isLeftover
      ? "it was begun anew, and the server may still have this: 'fullbore abort \(id)' deletes it there"
      : "'fullbore resume' does not try it; push it again, or 'fullbore abort \(id)' forgets it"
  }
}

extension JournalListing {
  /// What is wrong with the push, as a sentence without its full stop.
  var complaint: String {
    "a push of \(route) ended before all its files were known here, or could not read some of them"
  }

  /// What the user can do about it.
  static let remedy =
    "run that push again, which sends only what is missing and names what it cannot read, or give it up with "
    + "'fullbore abort --unread'"

  /// The sources and the destination, for messages.
  var route: String {
    let names = sources.prefix(3).map { $0 == "-" ? "standard input" : "\($0)" }.joined(separator: ", ")
    let more = sources.count > 3 ? " and \(sources.count - 3) more" : ""
    return "\(names)\(more) to \(destination.endpoint)"
  }
}
