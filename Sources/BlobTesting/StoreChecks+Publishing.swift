import BlobServer
import Blobs
import Platform
import Synchronization

/// Checks of published files.
extension StoreCheck {
  static func nothingIsInANewPlace(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    var random = SystemRandomNumberGenerator()
    let id = UploadID(using: &random)
    let root = try store.item(at: .root)
    try require(root?.isFolder == true, "the root is \(root as Any)")
    try require(try store.list(.root).isEmpty, "the root lists something")
    try require(try store.item(at: ServedPath("a".utf8)) == nil, "something is at a name")
    try require(try store.item(at: ServedPath("a/b".utf8)) == nil, "something is below a name")
    try require(try store.load(id) == nil, "an upload is known")
    try require(store.complete().isEmpty && store.expire { _ in false }.isEmpty, "an upload is complete or expires")
    try requireStatus(404, "open") { _ = try store.open(ServedPath("a".utf8)) }
    try requireStatus(404, "list") { _ = try store.list(ServedPath("a".utf8)) }
    try requireStatus(410, "reopen") { _ = try store.reopen(id) }
    store.delete(id)
  }

  static func publishesBytes(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    for (index, count) in [0, 1, 99_999, 100_000, 300_001].enumerated() {
      let bytes = sample(count)
      let publication = try store.publish("sub/deep/\(count)", bytes)
      try require(publication.outcome == .created, "outcome of \(count) bytes: .\(publication.outcome)")
      let item = try store.item(at: ServedPath("sub/deep/\(count)".utf8))
      try require(item == publication.item, "\(item as Any) is there, \(publication.item) was told")
      try require(item?.length == Int64(count), "the length is \(item?.length ?? -1)")
      try store.requireBytes("sub/deep/\(count)", bytes)
      try require(try store.list(ServedPath("sub/deep".utf8)).count == index + 1, "the list has another count")
    }
    let next = try exam.store()
    try next.requireBytes("sub/deep/300001", sample(300_001))
  }

  static func hidesWhatIsUnfinished(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let reception = try store.receive(sample(1000))
    try require(reception.length == 1000, "the reception holds \(reception.length)")
    _ = try store.begin("x", sample(1000), length: 2000)
    try require(try store.item(at: ServedPath("x".utf8)) == nil, "its name is taken")
    try require(try store.list(.root).isEmpty, "the root lists something")
  }

  static func takesNamesAsBytes(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    for name in [[0xFF, 0xC3], Array("a b%2F?#\\\n".utf8), Array(".hidden".utf8), Array(repeating: 97, count: 255)] {
      let target = try ServedPath(name)
      let reception = try store.receive(name)
      _ = try store.publish(reception, UploadRecord(reception.id, target: target, length: nil), isSaved: false)
      try require(try store.open(target).bytes() == name, "\(target) has other bytes")
    }
    let names = try store.list(.root).map(\.name.bytes)
    try require(names == names.sorted { $0.lexicographicallyPrecedes($1) }, "not in order: \(names)")
    try require(names.count == 3, "listed: \(names)")
  }

  static func meetsEqualBytes(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let bytes = sample(600_000)
    let first = try store.publish("a", bytes)
    let again = try store.publish("a", bytes)
    try require(again.outcome == .same, "the outcome is .\(again.outcome)")
    try require(again.item == first.item, "the file has become \(again.item)")
    try require(try store.publish("empty", []).outcome == .created, "empty was not created")
    try require(try store.publish("empty", []).outcome == .same, "empty twice is not the same")
  }

  static func refusesOtherBytes(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let bytes = sample(300_000)
    var last = bytes
    last[299_999] ^= 1
    try store.publish("a", bytes)
    for other in [last, Array(bytes.dropLast()), bytes + [0], []] {
      try requireStatus(409, "publishing \(other.count) other bytes") { try store.publish("a", other) }
      let record = try store.begin("a", other, length: Int64(other.count))
      try requireStatus(409, "publishing a saved upload") {
        _ = try store.publish(store.reopen(record.id), record, isSaved: true)
      }
      try require(try store.load(record.id) == nil, "the refused upload is still known")
    }
    try store.requireBytes("a", bytes)
  }

  static func replaces(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let first = try store.publish("a", sample(1000), .replace)
    try require(first.outcome == .created, "the outcome of the first is .\(first.outcome)")
    let open = try store.open(ServedPath("a".utf8))
    for bytes in [sample(2000), Array(sample(2000).reversed())] {
      let next = try store.publish("a", bytes, .replace)
      try require(next.outcome == .replaced, "the outcome is .\(next.outcome)")
      try require(next.item.etag != first.item.etag, "the validator stayed")
      try store.requireBytes("a", bytes)
    }
    try require(try open.bytes() == sample(1000), "an open file has changed")
  }

  static func keepsWhatMustBeNewAway(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    try require(try store.publish("a", [1], .mustBeNew).outcome == .created, "it was not created")
    try requireStatus(412, "again") { try store.publish("a", [1], .mustBeNew) }
    try store.requireBytes("a", [1])
  }

  static func publishesOneOfMany(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let threads = 6
    let results = Monitor<[(seed: Int, status: Int)]>([])
    for seed in 0..<threads {
      SystemThread.start("store-check") {
        var status = 0
        do {
          try store.publish("a/b", sample(50_000, seed: seed))
        } catch { status = (error as? ServerError)?.status ?? -1 }
        results.update { $0.append((seed, status)) }
      }
    }
    let ended = results.wait { $0.count == threads ? $0 : nil }
    let winners = ended.filter { $0.status == 0 }
    try require(winners.count == 1, "published: \(winners)")
    try require(ended.count { $0.status == 409 } == threads - 1, "ended as \(ended)")
    try store.requireBytes("a/b", sample(50_000, seed: winners[0].seed))
  }

  static func tellsFoldersFromFiles(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    try store.publish("folder/file", [1])
    for rule in [ExistingRule.keep, .replace] {
      try requireStatus(409, "a file in the place of a folder") { try store.publish("folder", [1], rule) }
      // 500 keeps the upload: someone may remove the file, after which the upload can be published.
      try requireStatus(500, "a folder in the place of a file") { try store.publish("folder/file/x", [1], rule) }
    }
    try requireStatus(409, "open a folder") { _ = try store.open(ServedPath("folder".utf8)) }
    try requireStatus(409, "remove a folder") { try store.remove(ServedPath("folder".utf8)) }
    try requireStatus(409, "list a file") { _ = try store.list(ServedPath("folder/file".utf8)) }
    try store.requireBytes("folder/file", [1])
  }

  static func lists(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    for name in ["b", "a", "B", "a-", "ä", ".b", "a.d/x"] { try store.publish(name, Array(name.utf8)) }
    let entries = try store.list(.root)
    let names = entries.map(\.name.description)
    try require(names == ["B", "a", "a-", "a.d", "b", "ä"], "listed: \(names)")
    try require(entries.filter(\.item.isFolder).map(\.name) == ["a.d"], "other folders are listed")
    try require(entries.last?.item.length == 2, "the length is \(entries.last?.item.length ?? -1)")
    for limit in 1...7 {
      var (parts, start): ([BytePath], BytePath?) = ([], nil)
      repeat {
        let page = try store.list(.root, after: start, atMost: limit)
        try require(page.entries.count <= limit && page.isFirst == (start == nil), "a part has too many entries")
        parts += page.entries.map(\.name)
        start = page.next
      } while start != nil
      try require(parts == entries.map(\.name), "parts of \(limit): \(parts)")
    }
  }

  static func removes(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    try store.publish("d/a", [1])
    try store.remove(ServedPath("d/a".utf8))
    try store.requireBytes("d/a", nil)
    try requireStatus(404, "again") { try store.remove(ServedPath("d/a".utf8)) }
    try requireStatus(404, "below nothing") { try store.remove(ServedPath("e/a".utf8)) }
    try requireStatus(404, "the root") { try store.remove(.root) }
    try require(try store.publish("d/a", [2, 3]).outcome == .created, "the name is not free")
  }

  /// Bytes that depend on their offset and on `seed`.
  static func sample(_ count: Int, seed: Int = 0) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ ($0 >> 8) &+ seed) }
  }
}

extension OpenItem {
  /// The whole file. Requires that it ends at its length.
  func bytes() throws -> [UInt8] {
    guard case .file(let file) = content else { return try remoteBytes() }
    var bytes = [UInt8](repeating: 0, count: Int(item.length) + 1)
    let count = pread(file.number, &bytes, bytes.count, 0)
    try require(count == Int(item.length), "\(count) bytes can be read, the length is \(item.length)")
    return Array(bytes.prefix(count))
  }

  private func remoteBytes() throws -> [UInt8] {
    guard item.length > 0, case .remote(let content) = content else { return [] }
    guard let bytes = content.start(0..<item.length).all() else { throw CheckFailure("the file cannot be read") }
    try require(bytes.count == item.length, "\(bytes.count) bytes can be read, the length is \(item.length)")
    return bytes
  }
}
