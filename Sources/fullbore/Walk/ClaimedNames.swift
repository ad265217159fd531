import Blobs
import Synchronization

/// The destination paths of a push and the files that have them, to prevent that two files get the same path.
///
/// A hash table stores 64 bits for each path and its file, so a million paths need 16 MB. Hashes may collide, so a
/// caller that gets false must compare the files.
final class ClaimedNames: Sendable {
  /// Open addressing with linear probing. An entry has 44 bits of the name's hash, then 20 bits of the file's; 0 is
  /// free.
  fileprivate struct Table {
    var entries = [UInt64](repeating: 0, count: 1024)
    var count = 0
  }
  private static let fileBits: UInt64 = 1 << 20 - 1
  private let table = Mutex(Table())

  /// Assigns `name` to `file`. Returns false, and changes nothing, if it seems to belong to another file.
  func take(_ name: BytePath, for file: BytePath) -> Bool {
    let entry = Self.entry(name, file)
    return table.withLock { table in
      let place = table.newPlace(of: entry)
      if table.entries[place] == 0 { table.put(entry, at: place) }
      return table.entries[place] == entry
    }
  }

  /// Whether `take` would return true.
  func isFree(_ name: BytePath, for file: BytePath) -> Bool {
    let entry = Self.entry(name, file)
    return table.withLock { table in
      let found = table.entries[table.place(of: entry)]
      return found == 0 || found == entry
    }
  }

  /// Assigns `name` to this file, whether it belongs to another one or to none.
  func give(_ name: BytePath, to file: BytePath) {
    let entry = Self.entry(name, file)
    table.withLock { $0.put(entry, at: $0.newPlace(of: entry)) }
  }

  /// Whether `name` probably belongs to this file.
  func isTaken(_ name: BytePath, by file: BytePath) -> Bool {
    let entry = Self.entry(name, file)
    return table.withLock { $0.entries[$0.place(of: entry)] == entry }
  }

  private static func entry(_ name: BytePath, _ file: BytePath) -> UInt64 {
    let entry = hash(name) & ~fileBits | hash(file) & fileBits
    return entry == 0 ? 1 : entry
  }

  private static func hash(_ path: BytePath) -> UInt64 {
    var hasher = Hasher()
    path.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}

extension ClaimedNames.Table {
  /// The index of the entry for the name, or the free index for it. The table always has a free entry.
  fileprivate func place(of entry: UInt64) -> Int {
    let mask = entries.count - 1
    var place = Int(truncatingIfNeeded: entry >> 20) & mask
    while entries[place] != 0, entries[place] >> 20 != entry >> 20 { place = (place + 1) & mask }
    return place
  }

  /// The same, with room for one entry more.
  fileprivate mutating func newPlace(of entry: UInt64) -> Int {
    if count * 4 > entries.count * 3 { grow() }
    return place(of: entry)
  }

  fileprivate mutating func put(_ entry: UInt64, at place: Int) {
    if entries[place] == 0 { count += 1 }
    entries[place] = entry
  }

  private mutating func grow() {
    let old = entries
    entries = [UInt64](repeating: 0, count: old.count * 2)
    for entry in old where entry != 0 { entries[place(of: entry)] = entry }
  }
}
