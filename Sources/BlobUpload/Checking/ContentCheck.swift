import BlobCrypto
import BlobHTTP
import Blobs

/// Compares sources with the files at a destination. Sends none, and changes nothing there.
package struct ContentCheck: Sendable {
  let uploader: Uploader
  let journal: Journal
  /// Reads every file back.
  let downloads: Bool
  let query: VersionQuery
  /// The most files of a batch that are asked for or read at the same time.
  private static let width = 16
  /// Results that are written to the journal in one transaction.
  private static let fewest = 64

  /// - `downloads`: every file is read back; otherwise the server's digests are believed, where it has any.
  /// - `isAnew`: what was compared before is compared again.
  package init(_ uploader: Uploader, _ journal: Journal, downloads: Bool, isAnew: Bool) {
    (self.uploader, self.journal, self.downloads) = (uploader, journal, downloads)
    query = VersionQuery(wantsDigests: !downloads, isAnew: isAnew)
  }

  /// Asks what is to be known of the destination as a whole. Throws if it refuses.
  package func begin() async throws(UploadError) { try await uploader.destination.askQuestion() }

  /// Compares each item. Calls `take` with the result of each, in any order, one at a time. Throws if no other item can be
  /// compared.
  package func check(_ items: [UploadItem], _ take: (CheckedFile) -> Void) async throws(UploadError) {
    let placed = try await placed(items)
    var known: [ComparedVersion?] = placed.map { _ in nil }
    if !query.isAnew {
      do { known = try await journal.compared(placed.map { $0.item.intent() }) } catch {
        throw UploadError(journal: error)
      }
    }
    for index in known.indices {
      if let version = known[index], !version.isOf(placed[index].item.info) || downloads && !version.isReadBack {
        known[index] = nil
      }
    }
    let told = try await ask(placed, known)
    try await compare(placed, known, told, take)
  }

  private func ask(
    _ placed: [PlacedItem], _ known: [ComparedVersion?]
  ) async throws(UploadError) -> [VersionQuery.Answer]? {
    guard let folder = queriedFolder else { return nil }
    let questions = zip(placed, known).map { file, known in
      VersionQuery.Question(name: HTTPURL.encode(file.item.target.path.bytes), known: known?.remote.versionWord)
    }
    return try await uploader.patiently("\(folder)") { () async throws(UploadError) in
      try await query.ask(questions, at: folder, uploader.context())
    }
  }

  /// The folder below which all files are; nil: such a server is never asked for many files at once.
  var queriedFolder: HTTPURL? {
    let (endpoint, destination) = (uploader.destination.endpoint, uploader.destination)
    let mayBeOurs = ["put", "tus", "resumable"].contains(destination.uploadProtocol.name)
    return mayBeOurs && endpoint.query == nil ? endpoint.folder : nil
  }

  private func compare(
    _ placed: [PlacedItem], _ known: [ComparedVersion?], _ told: [VersionQuery.Answer]?,
    _ take: (CheckedFile) -> Void
  ) async throws(UploadError) {
    var fatal: UploadError?
    var fresh: [(JournalIntent, ComparedVersion?)] = []
    await withTaskGroup(of: Result<CheckedFile, UploadError>.self) { group in
      func begin(_ index: Int) {
        group.addTask {
          do throws(UploadError) {
            return .success(try await check(placed[index], known[index], told?[index]))
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
    do { try await journal.keepCompared(compared) } catch { return UploadError(journal: error) }
    return nil
  }
}

/// An item at the place where an earlier push has sent it, if there was one.
struct PlacedItem: Sendable {
  var item: UploadItem
  /// From the `UploadResult` of that push; nil: there was none.
  var location: String?
}

extension ContentCheck {
  /// The items under the names that earlier pushes gave them, also where that was a name with a number.
  private func placed(_ items: [UploadItem]) async throws(UploadError) -> [PlacedItem] {
    let done: [[Journal.NumberDone]]
    do { done = try await journal.numbersDone(by: items, uploader.destination) } catch {
      throw UploadError(journal: error)
    }
    return zip(items, done).map { item, done in
      let fitting = done.filter { item.intent().likeness(to: $0.entry.intent) != .different }
      guard let latest = fitting.max(by: { $0.entry.updated < $1.entry.updated }) else {
        return PlacedItem(item: item, location: nil)
      }
      let numbered = latest.number > 1 ? item.under(latest.number, uploader.destination) : nil
      return PlacedItem(item: numbered ?? item, location: latest.entry.location)
    }
  }
}

extension String {
  /// A version that a Fullbore server has told, which is one word.
  fileprivate var versionWord: String? { hasPrefix("\"") && !contains(" ") && !contains("\n") ? self : nil }
}
