import BlobUpload
import Blobs

/// Numbers of the files of a push, by what became of them.
struct FileCounts: Sendable, Hashable {
  var found = 0
  /// Total length of the files found.
  var foundBytes: Int64 = 0
  /// Files that were found before their length was known.
  var unsized = 0
  var sent = 0
  /// Files that an earlier push has sent.
  var doneBefore = EvidenceCounts()
  var alreadyThere = 0
  /// Sockets, links to folders and other objects that cannot be sent, and files excluded by options.
  var leftOut = 0
  /// Hidden files and folders that were left out, because `--hidden` was not given.
  var hidden = 0
  var failed = 0
  /// Files that were not sent because another file has their name, as the user wants it.
  var skipped = 0
  /// Files that were sent under a name with a number, since another file has their own.
  var renamed = 0
  /// Total length of files that are finished or failed.
  var settledBytes: Int64 = 0

  /// Bytes of the settled files that were read to be compared.
  var readOfSettled: Int64 = 0

  /// Files that are at the destination, by this run or before it.
  var there: Int { sent + alreadyThere + doneBefore.all }
  /// Files that were found and are neither finished nor failed.
  var open: Int { found - there - failed }

  mutating func addFound(bytes: Int64?) { foundBytes = foundBytes.addingClamped(bytes ?? 0) }
  mutating func addSettled(bytes: Int64?) { settledBytes = settledBytes.addingClamped(bytes ?? 0) }

  /// Reverses `found`.
  mutating func withdraw(length: Int64?) {
    found -= 1
    if length == nil { unsized -= 1 }
    foundBytes = foundBytes.subtractingClamped(length ?? 0)
  }

  /// The sums of several destinations, except for what was found and what was left out, which is the same for each.
  func summing(_ destinations: [FileCounts]) -> FileCounts {
    var sum = FileCounts()
    for each in destinations {
      sum.sent += each.sent
      sum.doneBefore.add(each.doneBefore)
      sum.alreadyThere += each.alreadyThere
      sum.failed += each.failed
      sum.skipped += each.skipped
      sum.renamed += each.renamed
      sum.addSettled(bytes: each.settledBytes)
    }
    // Each destination of a watch finds its files by itself.
    for each in destinations + [self] {
      (sum.found, sum.foundBytes) = (max(sum.found, each.found), max(sum.foundBytes, each.foundBytes))
      sum.unsized = max(sum.unsized, each.unsized)
      (sum.leftOut, sum.hidden) = (max(sum.leftOut, each.leftOut), max(sum.hidden, each.hidden))
    }
    return sum
  }
}

/// Numbers of files, by how it is known that they are stored.
struct EvidenceCounts: Sendable, Hashable {
  var journal = 0
  var length = 0
  var digest = 0
  var bytes = 0

  var all: Int { journal + length + digest + bytes }

  mutating func add(_ evidence: StoredEvidence) {
    switch evidence {
    case .journal: journal += 1
    case .length: length += 1
    case .digest: digest += 1
    case .bytes: bytes += 1
    }
  }

  mutating func add(_ other: EvidenceCounts) {
    (journal, length) = (journal + other.journal, length + other.length)
    (digest, bytes) = (digest + other.digest, bytes + other.bytes)
  }
}
