import BlobSQLite
import Blobs

/// An upload whose name has a number over 1.
package struct NumberedUpload: Sendable {
  package let source: BytePath
  package let name: NumberedName
  /// false: it is under way, or its run was killed; the destination may have it.
  package let isDone: Bool
}

/// The uploads, in a journal, that have a name with a number.
package struct JournalNumbers: Sendable {
  let journal: Journal

  /// An upload that is done under a name with a number; 1 is the name without one.
  package typealias NumberDone = (number: Int, entry: JournalEntry)

  /// More names with a counter are not looked for, since other files of a layout may have the same beginning.
  private static let mostCounted = 32

  /// The uploads of one item's source under the names that the item may get, in any version.
  package struct Known: Sendable {
    package var done: [NumberDone] = []
    /// The other live process that sends the source under one of these names; nil: none does.
    package var sender: ProcessIdentity?
  }

  /// The uploads of each item's source that are done under one of the names that the item may get, in any version.
  package func done(
    by items: [UploadItem], _ destination: UploadDestination
  ) async throws(JournalError) -> [[NumberDone]] {
    try await known(by: items, destination).map(\.done)
  }

  /// For each item, the uploads of its source that are done, or that another process sends.
  package func known(
    by items: [UploadItem], _ destination: UploadDestination
  ) async throws(JournalError) -> [Known] {
    try await journal.read { store throws(SQLiteError) in
      var result: [Known] = []
      for item in items {
        var known = Known()
        for (from, to) in Self.ranges(item, destination) {
          for entry in try store.uploads.entries(of: item.identity, from: from, to: to) {
            let isSent = entry.owner != nil && entry.owner != store.uploads.owners.mark && !entry.isLeftover
            guard entry.state == .done || isSent, let number = Self.number(of: entry, item, destination) else {
              continue
            }
            if isSent { known.sender = entry.owner } else { known.done.append((number, entry)) }
          }
        }
        result.append(known)
      }
      return result
    }
  }

  /// Gives up the unfinished uploads of an item's source under other numbers than the item's, which is done: an earlier run
  /// was ended there, and another file has had the name since. Returns those that were given up. This journal has claimed
  /// them: remove them once their sessions were deleted at the server.
  package func giveUpOtherNumbers(
    of item: UploadItem, _ destination: UploadDestination
  ) async throws(JournalError) -> [JournalEntry] {
    let number = item.numbered?.number ?? 1
    let others = try await journal.read { store throws(SQLiteError) in
      var others: [JournalEntry] = []
      for (from, to) in Self.ranges(item, destination) {
        others += try store.uploads.entries(of: item.identity, from: from, to: to).filter { entry in
          entry.state != .done && !entry.isSuperseded && entry.owner == nil
            && Self.number(of: entry, item, destination).map { $0 != number } == true
        }
      }
      return others
    }
    // Hardly any file has some.
    if others.isEmpty { return [] }
    return try await journal.write { store, me throws(SQLiteError) in try store.claims.giveUp(others, as: me) }
  }

  /// The uploads to a destination that are done or under way under such a name, the latest last.
  package func numbered(at destination: Int64) async throws(JournalError) -> [NumberedUpload] {
    try await journal.read { store throws(SQLiteError) in try store.numbers.numbered(at: destination) }
  }

  /// The numbered names of these entries, by the entries' ids. Entries without a number, and entries of earlier
  /// versions, are left out.
  package func names(
    of entries: [JournalEntry]
  ) async throws(JournalError) -> [Int64: NumberedName] {
    try await journal.read { store throws(SQLiteError) in try store.numbers.names(of: entries) }
  }

  /// Ranges of the keys of all names of an item. A number before the extension is preceded by the name of this file, so that
  /// one range has all of them and little else.
  private static func ranges(_ item: UploadItem, _ destination: UploadDestination) -> [(from: String, to: String)] {
    func key(_ number: Int) -> String? { item.under(number, destination)?.intent().target }
    guard let first = key(1), let second = key(2), let third = key(3) else { return [] }
    // Opaque names have nothing in common either.
    let isCounted = item.numbered?.counter != nil || item.target.unsealedPath != nil
    if isCounted { return (1...mostCounted).compactMap(key).map { ($0, $0 + "$") } }
    let before = String(decoding: zip(second.utf8, third.utf8).prefix { $0 == $1 }.map(\.0), as: UTF8.self)
    return [(first, first + "$"), (before + "0", before + ":")]
  }

  private static func number(of entry: JournalEntry, _ item: UploadItem, _ destination: UploadDestination) -> Int? {
    let name = item.numbered ?? NumberedName(item.target.plainPath)
    guard let number = name.number(of: entry.intent.path), let under = item.under(number, destination),
      under.intent().key == entry.intent.key
    else {
      return nil
    }
    return number
  }
}
