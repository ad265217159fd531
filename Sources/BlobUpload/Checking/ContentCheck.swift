import BlobCrypto
import BlobHTTP
import Blobs

/// Compares sources with the files at a destination. Sends none, and changes nothing there.
package struct ContentCheck: Sendable {
  let uploader: Uploader
  let journal: Journal
  /// Reads every file back.
  let downloads: Bool
  /// The identities open sealed files that are read back.
  let identities: [SealIdentity]
  /// Called with each result before it counts. It may return another one. nil: there is nothing more to be found out.
  package var confirm: (@Sendable (CheckedFile) async throws(UploadError) -> CheckedFile)?
  private let isAnew: Bool
  /// Asks whether files are there, and for no digest.
  let presence: VersionQuery
  /// The most files of a batch that are asked for or read at the same time.
  private static let width = 16
  /// Results that are written to the journal in one transaction.
  private static let fewest = 64

  /// - `downloads`: every file is read back; otherwise the server's digests are believed, where it has any.
  /// - `isAnew`: what was compared before is compared again.
  /// - `identities`: open sealed files that are read back.
  package init(
    _ uploader: Uploader, _ journal: Journal, downloads: Bool, isAnew: Bool, identities: [SealIdentity] = []
  ) {
    (self.uploader, self.journal, self.downloads, self.identities) = (uploader, journal, downloads, identities)
    self.isAnew = isAnew
    presence = VersionQuery(nil, isAnew: false, uploader.destination.acquaintance.existing.queries)
  }

  /// Asks what is to be known of the destination as a whole. Throws if it refuses.
  package func begin() async throws(UploadError) { try await uploader.destination.askQuestion() }

  /// Compares each item. Calls `take` with the result of each, in any order, one at a time. Throws if no other item can be
  /// compared.
  package func check(_ items: [UploadItem], _ take: (CheckedFile) -> Void) async throws(UploadError) {
    let placed = try await placed(items)
    var known: [ComparedVersion?] = placed.map { _ in nil }
    if !isAnew {
      do { known = try await journal.comparisons.versions(of: placed.map { $0.item.intent() }) } catch {
        throw UploadError(journal: error)
      }
    }
    for index in known.indices {
      if let version = known[index], !version.isOf(placed[index].item.info) || downloads && !version.isReadBack {
        known[index] = nil
      }
    }
    let questions = zip(placed, known).map { file, known in
      VersionQuery.Question(name: HTTPURL.encode(file.item.target.path.bytes), known: known?.remote.versionWord)
    }
    let told = try await answers(for: placed, questions)
    try await compare(placed, known, told, try await sealed(instead: placed, told), take)
  }

  /// Files that are compared by other digests, as sealed ones of earlier runs, are asked for in a request of their own.
  private func answers(
    for placed: [PlacedItem], _ questions: [VersionQuery.Question]
  ) async throws(UploadError) -> [VersionQuery.Answer?] {
    var told: [VersionQuery.Answer?] = placed.map { _ in nil }
    let algorithms = placed.map { downloads ? nil : $0.item.sealed?.recalledAlgorithm ?? .sha256 }
    for (algorithm, indices) in Dictionary(grouping: placed.indices, by: { algorithms[$0] }) {
      let query = VersionQuery(algorithm, isAnew: isAnew, uploader.destination.acquaintance.existing.queries)
      guard let answers = try await ask(query, indices.map { questions[$0] }) else { continue }
      for (index, answer) in zip(indices, answers) { told[index] = answer }
    }
    return told
  }

  /// Whether a sealed file is there in the place of one that is missing; nil: the destination was not asked.
  private func sealed(
    instead placed: [PlacedItem], _ told: [VersionQuery.Answer?]
  ) async throws(UploadError) -> [Bool?] {
    var found: [Bool?] = placed.map { _ in nil }
    let missing = placed.indices.filter { told[$0] == .nothing && !placed[$0].item.isSealed }
    let questions = missing.map { index in
      VersionQuery.Question(name: HTTPURL.encode(placed[index].item.target.path.bytes + Sealing.ending.bytes))
    }
    guard let answers = try await ask(presence, questions) else { return found }
    for (index, answer) in zip(missing, answers) {
      found[index] = if case .file = answer { true } else { false }
    }
    return found
  }

  /// How an earlier check has found that the file at the destination has the bytes of an item; nil: none did, or one of both
  /// has changed since. Reads neither.
  func evidence(of item: UploadItem) async throws(UploadError) -> StoredEvidence? {
    let known: ComparedVersion?
    do { known = try await journal.comparisons.versions(of: [item.intent()]).first ?? nil } catch {
      throw UploadError(journal: error)
    }
    guard let known, known.isOf(item.info) else { return nil }
    let question = VersionQuery.Question(
      name: HTTPURL.encode(item.target.path.bytes), known: known.remote.versionWord)
    let told = try await ask(presence, [question])?.first
    guard let found = try await find(PlacedItem(item: item), told), known.remote == found.version,
      found.length == item.info.length
    else { return nil }
    return known.isReadBack ? .bytes : .digest
  }

  /// Whether the destination computes digests of its files when it is asked, as a Fullbore server does.
  package var tellsDigests: Bool { uploader.destination.acquaintance.existing.tells }
  /// The URL of the destination.
  package var endpoint: HTTPURL { uploader.destination.endpoint }

  /// Notes that a file has only got another name and its own one back since it was compared, which changes its version: the next
  /// push need not send it again.
  package func noteRenamed(_ file: CheckedFile, _ version: Validator) {
    if let entry = file.entry { journal.recognized(entry, version) }
  }

  private func ask(
    _ query: VersionQuery, _ questions: [VersionQuery.Question]
  ) async throws(UploadError) -> [VersionQuery.Answer]? {
    guard let folder = queriedFolder, !questions.isEmpty else { return nil }
    return try await uploader.patiently("\(folder)") { () async throws(UploadError) in
      try await query.ask(questions, at: folder, uploader.context())
    }
  }

  /// The folder below which all files are; nil: such a server is never asked for many files at once.
  var queriedFolder: HTTPURL? {
    let destination = uploader.destination
    return destination.mayTakeQueries && destination.endpoint.query == nil ? destination.endpoint.folder : nil
  }

  private func compare(
    _ placed: [PlacedItem], _ known: [ComparedVersion?], _ told: [VersionQuery.Answer?], _ sealed: [Bool?],
    _ take: (CheckedFile) -> Void
  ) async throws(UploadError) {
    var fatal: UploadError?
    var fresh: [(JournalIntent, ComparedVersion?)] = []
    await withTaskGroup(of: Result<CheckedFile, UploadError>.self) { group in
      func begin(_ index: Int) {
        group.addTask {
          do throws(UploadError) {
            let file = try await check(placed[index], known[index], told[index], isSealed: sealed[index])
            return .success(try await confirm?(file) ?? file)
          } catch {
            return .failure(error)
          }
        }
      }
      var next = min(Self.width, placed.count)
      for index in 0..<next { begin(index) }
      while let result = await group.next() {
        switch result {
        case .success(let file):
          if file.compared != nil || file.result.isDifferent { fresh.append((file.item.intent(), file.compared)) }
          take(file)
        case .failure(let error):
          // The errors of the others are those of a cancelled task.
          if fatal == nil { fatal = error }
          group.cancelAll()
        }
        if fresh.count >= Self.fewest || group.isEmpty {
          fatal = await keep(fresh) ?? fatal
          fresh = []
        }
        if next < placed.count, fatal == nil {
          begin(next)
          next += 1
        }
      }
    }
    if let fatal { throw fatal }
  }

  private func keep(_ compared: [(JournalIntent, ComparedVersion?)]) async -> UploadError? {
    if compared.isEmpty { return nil }
    do { try await journal.comparisons.keep(compared) } catch { return UploadError(journal: error) }
    return nil
  }
}

/// An item at the place where an earlier push has sent it, if there was one.
struct PlacedItem: Sendable {
  var item: UploadItem
  /// From the `UploadResult` of that push; nil: there was none.
  var location: String?
  /// The entry in the journal of this version of the source; nil: there is none.
  var entry: Int64?
  /// The facts that the journal has about the ciphertext of this version of the source; nil: it has none.
  var content: SealedContent?
}

extension ContentCheck {
  /// The items under the names that earlier pushes gave them, also where that was a name with a number.
  private func placed(_ items: [UploadItem]) async throws(UploadError) -> [PlacedItem] {
    do throws(JournalError) {
      let latest = zip(items, try await journal.numbers.done(by: items, uploader.destination)).map { item, done in
        done.filter { item.intent().match(with: $0.entry.intent) != .different }
          .max { $0.entry.updated < $1.entry.updated }
      }
      let sealed = zip(items, latest).compactMap { item, latest in item.isSealed ? latest?.entry.id : nil }
      let contents = try await journal.seals.contents(of: sealed)
      return zip(items, latest).map { item, latest in
        guard let latest else { return PlacedItem(item: item, location: nil) }
        let numbered = latest.number > 1 ? item.under(latest.number, uploader.destination) : nil
        var placed = PlacedItem(item: numbered ?? item, location: latest.entry.location)
        if let version = latest.entry.intent.validator, item.info.isCertainly(version) {
          (placed.entry, placed.content) = (latest.entry.id, contents[latest.entry.id])
        }
        if let content = placed.content { item.sealed?.recall(content) }
        return placed
      }
    } catch {
      throw UploadError(journal: error)
    }
  }
}

extension String {
  /// A version that a Fullbore server has told, which is one word.
  fileprivate var versionWord: String? { hasPrefix("\"") && !contains(" ") && !contains("\n") ? self : nil }
}
