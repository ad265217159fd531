import Blobs

extension UploadQueue {
  /// What becomes of an item whose name has other bytes at the destination.
  package enum Conflicts: Sendable {
    /// The item fails.
    case fail
    /// The item is not recorded in the journal, and its outcome is the failure.
    case leaveOut
    /// The item is sent as the one that this returns; nil: it fails.
    case rename(@Sendable (UploadItem) -> UploadItem?)
  }

  /// A path with a number in it that tells it from others.
  package struct NumberedName: Sendable, Hashable {
    /// The path before it got a number, or the one with number 1.
    package let first: BytePath
    /// The offset of the digit 1 in `first` that the number replaces; nil: the number is put before the extension.
    package let counter: Int?
    package private(set) var number = 1
    private static let most = 9_999

    /// A NUL in the path, which no name has, stands for the number.
    package init(_ path: BytePath) {
      counter = path.bytes.firstIndex(of: 0)
      var first = path
      if let counter { first.bytes[counter] = UInt8(ascii: "1") }
      self.first = first
    }

    /// The name of which a journal has the path, the counter's offset and the number. nil: the path has no such number.
    init?(_ path: BytePath, counter: Int?, number: Int) {
      let digits = Array("\(number)".utf8)
      var bytes = path.bytes
      let name = path.name.bytes
      // Without a counter, the number follows a dash, before the extension.
      let start = counter ?? bytes.count - name.count + Self.end(name) - digits.count
      guard 1...Self.most ~= number, start >= 0, start <= bytes.count - digits.count else { return nil }
      let places = start..<(start + digits.count)
      guard bytes[places].elementsEqual(digits) else { return nil }
      if counter != nil {
        bytes.replaceSubrange(places, with: [UInt8(ascii: "1")])
      } else {
        guard number > 1, start > 0, bytes[start - 1] == UInt8(ascii: "-") else { return nil }
        bytes.removeSubrange((start - 1)..<places.upperBound)
      }
      (first, self.counter, self.number) = (BytePath(bytes), counter, number)
    }

    /// The path with a NUL in place of a counter, as it was given.
    package var template: BytePath {
      var template = first
      if let counter { template.bytes[counter] = 0 }
      return template
    }

    /// The name of a file that an earlier run has given its number. `name`: that of its source. A sealed file has another
    /// ending after it.
    package init(_ path: BytePath, of name: BytePath) {
      let isSealed = Sealing.isName(path.bytes) && !Sealing.isName(name.bytes)
      let name = isSealed ? BytePath(name.bytes + Sealing.ending.bytes) : name
      self.init(path)
      let (own, numbered) = (name.bytes, path.name.bytes)
      let end = counter == nil && Self.end(own) < numbered.count ? Self.end(own) : 0
      guard end > 0, numbered.starts(with: own[..<end]), numbered[end] == UInt8(ascii: "-") else { return }
      let digits = numbered[(end + 1)...].prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
      guard let number = Int(String(decoding: digits, as: UTF8.self)), 2...Self.most ~= number,
        numbered[digits.endIndex...].elementsEqual(own[end...])
      else { return }
      self.init(path.folder.appending(name))
      self.number = number
    }

    /// The offset in a name at which its number is put. An XMP file may have the whole name of its photo, and a sealed file
    /// has that of the file in it.
    private static func end(_ name: [UInt8]) -> Int {
      if Sealing.isName(name) { return end(Array(name.dropLast(Sealing.ending.bytes.count))) }
      func dot(_ name: ArraySlice<UInt8>) -> Int? {
        name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > name.startIndex ? $0 : nil }
      }
      guard let last = dot(name[...]) else { return name.count }
      let isXMP = name[last...].map { $0 | 0x20 } == Array(".xmp".utf8)
      return isXMP ? dot(name[..<last]) ?? last : last
    }

    package var path: BytePath {
      if number == 1 { return first }
      let (before, after) = pieces
      return BytePath(before + Array("\(number)".utf8) + after)
    }

    /// The bytes before and after a number over 1.
    private var pieces: (before: [UInt8], after: ArraySlice<UInt8>) {
      if let counter { return (Array(first.bytes[..<counter]), first.bytes[(counter + 1)...]) }
      let name = first.name.bytes
      let end = first.bytes.count - name.count + Self.end(name)
      return (first.bytes[..<end] + [UInt8(ascii: "-")], first.bytes[end...])
    }

    /// The number with which this would be `path`; nil: none.
    func number(of path: BytePath) -> Int? {
      if path == first { return 1 }
      let ((before, after), bytes) = (pieces, path.bytes)
      guard bytes.count > before.count + after.count, bytes.starts(with: before),
        bytes.suffix(after.count).elementsEqual(after)
      else { return nil }
      let digits = bytes[before.count..<(bytes.count - after.count)]
      guard digits.count <= 4, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
      return Int(String(decoding: digits, as: UTF8.self)).flatMap { 2...Self.most ~= $0 ? $0 : nil }
    }

    /// Returns false if there are too many files of one name.
    package mutating func count() -> Bool { count(to: number + 1) }

    /// Returns false if the number is over the largest one.
    package mutating func count(to number: Int) -> Bool {
      self.number = number
      return number <= Self.most
    }
  }

  private static let mostNames = 100

  /// Returns the item under another name if `error` says that its name is taken; nil: it fails.
  func underNextName(
    _ work: Claimed, _ id: Int64, _ progress: UploadProgress, _ error: UploadError
  ) async -> Claimed? {
    guard case .rename(let next) = conflicts, error.isNameTaken, work.item.source.access == .random,
      work.names < Self.mostNames, var again = next(work.item), await discardSession(of: id),
      // A journal that cannot be written ends the queue at the next item. This item keeps its entry and reports its own
      // error.
      let claimed = try? await claim([again], insteadOf: id).first
    else { return nil }
    if let group = again.group { groups?.note(again.numbered?.number ?? 1, of: group) }
    again = inGroupOfNumber(again)
    // Another process is sending to the next name, so the entry of this one is still there.
    if claimed.claim.isBusy { journal.failed(id, error.message) }
    progress.restart()
    return Claimed(again, claimed.claim, progress, looks: work.looks, names: work.names + 1)
  }

  /// The item under the number that the main file of its group has got since the item was claimed, else the same.
  func underGroupNumber(_ work: Claimed) async -> Claimed {
    let work = work.with(inGroupOfNumber(work.item))
    guard work.replaceable != nil, let again = groups?.numbered(work.item) else { return work }
    return await claimed(again, insteadOf: work)
  }

  /// The item in the group that the server is told for the files of its photo under this number. Under the names without it,
  /// files of an earlier run may wait there.
  private func inGroupOfNumber(_ item: UploadItem) -> UploadItem {
    guard let group = item.group, let number = groups?.number(of: group) else { return item }
    var item = item
    item.target.group = item.target.group?.numbered(number)
    return item
  }

  /// The same if the entry cannot be replaced: then the file keeps its name, and the run names it at its end.
  private func claimed(_ item: UploadItem, insteadOf work: Claimed) async -> Claimed {
    guard let id = work.replaceable, await discardSession(of: id),
      let claimed = try? await claim([item], insteadOf: id).first, !claimed.claim.isBusy
    else { return work }
    return Claimed(item, claimed.claim, work.progress, looks: work.looks, names: work.names)
  }

  /// Whether earlier runs of this journal may have sent files under names with numbers.
  func knowsNumbers() async throws(UploadError) -> Bool {
    // The receiver of a form decides on names.
    if uploader.destination.traits.recipient != nil { return false }
    if groups?.isNumbering == true { return true }
    do { return try await journal.destinations().contains { $0.renames == true } } catch {
      throw UploadError(journal: error)
    }
  }

  /// Claims items of the feed. A file that an earlier run has sent under a name with a number gets that name, so that it is
  /// not sent twice, also where this run gives no other names. `knowsNumbers`: as that function has returned.
  func claimFound(_ items: [UploadItem], knowsNumbers: Bool) async throws(UploadError) -> [Claimed] {
    var works = try await claim(items)
    if !knowsNumbers { return works }
    // A file that may replace other bytes is wanted under its own name.
    let open = works.indices.filter { works[$0].replaceable != nil && !works[$0].item.target.overwrite }
    if open.isEmpty { return works }
    let destination = uploader.destination
    let known: [[JournalNumbers.NumberDone]]
    do {
      known = try await journal.numbers.done(by: open.map { works[$0].item }, destination)
    } catch {
      throw UploadError(journal: error)
    }
    for (index, known) in zip(open, known) {
      let item = works[index].item
      guard let number = item.number(among: known), number != item.numbered?.number ?? 1,
        let again = item.under(number, destination)
      else { continue }
      works[index] = await claimed(again, insteadOf: works[index])
    }
    return works
  }

  /// Whether the item is to be left out, and the journal has no trace of it any more.
  func isLeftOut(_ id: Int64, _ error: UploadError) async -> Bool {
    guard case .leaveOut = conflicts, error.isNameTaken else { return false }
    guard await discardSession(of: id) else { return false }
    do { try await journal.remove([id]) } catch { return false }
    return true
  }

  /// Returns true once the server has nothing of an upload, so that its entry may be removed.
  private func discardSession(of id: Int64) async -> Bool {
    guard let entry = try? await journal.unfinished(after: id - 1, limit: 1).first, entry.id == id else { return false }
    if let session = entry.sessionWithParts {
      guard await !uploader.hasWhole(session), await uploader.discard(session) else { return false }
    }
    return true
  }
}

extension UploadQueue.Claimed {
  /// The entry that may be replaced by one under another name.
  fileprivate var replaceable: Int64? {
    switch claim {
    case .fresh(let id): id
    case .resume(let entry), .unsure(let entry): entry.id
    case .replaced, .busy, .done: nil
    }
  }
}

extension UploadItem {
  /// nil: the number is too large.
  package func under(_ number: Int, _ destination: UploadDestination) -> UploadItem? {
    var numbered = numbered ?? UploadQueue.NumberedName(target.plainPath)
    guard numbered.count(to: number) else { return nil }
    return named(numbered, destination)
  }

  package func named(_ numbered: UploadQueue.NumberedName, _ destination: UploadDestination) -> UploadItem {
    var item = self
    (item.numbered, item.twin) = (numbered, nil)
    item.target = destination.target(
      numbered.path, length: target.length, contentType: target.contentType, overwrite: target.overwrite)
    (item.target.modified, item.target.metadata, item.target.group) = (target.modified, target.metadata, target.group)
    return item
  }

  /// The number under which this version of the item is done, if it is; `known`: what `Journal.numbersDone` has of it.
  package func number(among known: [JournalNumbers.NumberDone]) -> Int? {
    let intent = intent()
    return known.filter { intent.match(with: $0.entry.intent) != .different }
      .max { $0.entry.updated < $1.entry.updated }?.number
  }

  /// Whether the name has a number because another file has the name without it.
  package var isRenamed: Bool { (numbered?.number ?? 1) > 1 }
}

extension UploadError {
  /// The name has other bytes at the destination, and another name may be free.
  package var isNameTaken: Bool {
    guard let status, [409, 412].contains(status), side == .file else { return false }
    // A request that only asks creates no file. Of a folder in the way, no name of a file is free.
    return !message.hasPrefix("GET ") && !message.hasPrefix("HEAD ") && !message.contains(" is a folder")
      && !message.contains("a file is in the place of a folder")
      // A server refuses the id of a group of files, whatever their names are.
      && !message.contains(" wait in the group ")
  }
}
