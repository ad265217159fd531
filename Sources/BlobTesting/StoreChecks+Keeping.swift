import BlobCrypto
import BlobServer
import Blobs

/// Checks of stored unfinished uploads, also across a restart of the store.
extension StoreCheck {
  static func goesOn(_ exam: StoreCheckContext) throws {
    let bytes = sample(250_000)
    var store = try exam.store()
    let record = try store.begin("d/x", Array(bytes[..<100_000]), length: 250_000)
    for part in [100_000..<100_000, 100_000..<200_000, 200_000..<250_000] {
      store = try exam.store()
      let saved = try store.load(record.id)
      try require(saved?.offset == Int64(part.lowerBound), "it is at \(saved?.offset ?? -1), not \(part.lowerBound)")
      try require(saved?.isFinished == false, "it is finished")
      let reception = try store.reopen(record.id)
      try require(reception.length == Int64(part.lowerBound), "reopened it is at \(reception.length)")
      try reception.append(Array(bytes[part]))
    }
    let publication = try store.publish(store.reopen(record.id), record, isSaved: true)
    try require(publication.outcome == .created, "the outcome is .\(publication.outcome)")
    try store.requireBytes("d/x", bytes)
  }

  static func keepsRecords(_ exam: StoreCheckContext) throws {
    let store = try exam.store()
    let target = try ServedPath([0xFF, 0x0A, 0x2F, 0x25, 0x20])
    let reception = try store.begin(length: nil)
    var record = UploadRecord(
      reception.id, target: target, existing: .replace, length: nil, metadata: "filename eA==,flag")
    try store.save(record)
    try require(try store.load(record.id)?.record == record, "the record has changed")
    record.length = 7
    record.digest = "sha-256=:AAAA:"
    try store.save(record)
    try require(try store.load(record.id)?.record == record, "the length was not kept")
    let saved = try exam.store().load(record.id)
    try require(saved?.record == record, "another store reads \(saved as Any)")
    try require(saved?.offset == 0, "it is at \(saved?.offset ?? -1)")
  }

  static func computesDigests(_ exam: StoreCheckContext) throws {
    let bytes = sample(600_001)
    for count in [0, 1, 600_001] {
      let store = try exam.store()
      let reception = try store.receive(Array(bytes[..<count]))
      let found = try store.ability(\.receptionDigests).digests(of: reception, [.sha256, .crc32c])
      for algorithm in [Digest.Algorithm.sha256, .crc32c] {
        let right = Digest.value(of: Array(bytes[..<count]), algorithm)
        try require(found[algorithm] == right, "the \(algorithm) of \(count) bytes is wrong")
      }
      if count == 0 { continue }
      store.interrupt()
      try requireStatus(503, "digests after the interruption") {
        _ = try store.ability(\.receptionDigests).digests(of: reception, [.sha256])
      }
    }
  }

  static func keepsProbation(_ exam: StoreCheckContext) throws {
    let bytes = sample(3000)
    var store = try exam.store()
    let record = try store.begin("x", Array(bytes[..<1000]), length: 3000)
    let reception = try store.reopen(record.id)
    try reception.hold()
    try reception.append(sample(2000, seed: 1))
    try require(reception.length == 3000, "it holds \(reception.length)")
    try reception.drop()
    try require(reception.length == 1000, "after dropping it holds \(reception.length)")
    try reception.hold()
    try reception.append(Array(bytes[1000..<2000]))
    try reception.keep()
    try reception.append(Array(bytes[2000...]))
    store = try exam.store()
    try require(try store.load(record.id)?.offset == 3000, "what was kept is gone")
    _ = try store.publish(store.reopen(record.id), record, isSaved: true)
    try store.requireBytes("x", bytes)
  }

  /// As after a kill: the store never learned whether the bytes on probation are valid.
  static func forgetsProbation(_ exam: StoreCheckContext) throws {
    for start in [0, 1000] {
      var store = try exam.store()
      let record = try store.begin("at \(start)", sample(start), length: 3000)
      let reception = try store.reopen(record.id)
      try reception.hold()
      try reception.append(sample(3000 - start, seed: 1))
      store = try exam.store()
      let saved = try store.load(record.id)
      try require(saved?.offset == Int64(start), "it is at \(saved?.offset ?? -1), not at \(start)")
      try require(store.complete().isEmpty, "it is told to be complete")
      // Bytes appended afterwards are stored as usual.
      try store.reopen(record.id).append(sample(500))
      store = try exam.store()
      try require(try store.load(record.id)?.offset == Int64(start + 500), "what came later is gone")
    }
  }

  static func forgetsWhatWasNotSaved(_ exam: StoreCheckContext) throws {
    let id = try exam.store(maxTotal: 1000).receive(sample(900)).id
    let store = try exam.store(maxTotal: 1000)
    try require(try store.load(id) == nil, "it is known")
    try requireStatus(410, "reopen") { _ = try store.reopen(id) }
    try store.publish("a", sample(1000))
  }

  static func remembersFinished(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    let record = try store.begin("x", sample(1000), length: 1000)
    _ = try store.publish(store.reopen(record.id), record, isSaved: true)
    for _ in 0..<2 {
      let saved = try store.load(record.id)
      try require(saved?.isFinished == true && saved?.offset == 1000, "it is \(saved as Any)")
      var expected = record
      expected.published = try store.item(at: record.target)?.version
      try require(saved?.record == expected, "the record is \(saved?.record as Any)")
      try require(store.complete().isEmpty, "it would be published again")
      store = try exam.store()
    }
    // Publishing equal bytes under the same name also finishes an upload.
    let twin = try store.begin("x", sample(1000), length: 1000)
    let publication = try store.publish(store.reopen(twin.id), twin, isSaved: true)
    try require(publication.outcome == .same, "the outcome is .\(publication.outcome)")
    try require(try store.load(twin.id)?.isFinished == true, "the twin is not finished")
  }

  static func deletes(_ exam: StoreCheckContext) throws {
    let store = try exam.store(maxTotal: 1000)
    let open = try store.begin("x", sample(10), length: 1000)
    store.delete(open.id)
    let done = try store.begin("y", sample(10), length: 10)
    _ = try store.publish(store.reopen(done.id), done, isSaved: true)
    store.delete(done.id)
    for id in [open.id, done.id] {
      try require(try store.load(id) == nil, "it is known")
      try requireStatus(410, "reopen") { _ = try store.reopen(id) }
    }
    try store.requireBytes("y", sample(10))
    try store.publish("z", sample(990))
  }

  static func expires(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    let open = try store.begin("x", sample(10), length: 20)
    let busy = try store.begin("b", sample(10), length: 20)
    let done = try store.begin("y", sample(10), length: 10)
    _ = try store.publish(store.reopen(done.id), done, isSaved: true)
    try require(store.expire { _ in false }.isEmpty, "it expires too early")
    let due = try store.load(open.id)?.expires
    store = try exam.store(expire: .zero)
    try require(due != nil, "it has no time to expire")
    try require(store.expire { $0 == busy.id } == [open.id], "other uploads have expired")
    try require(try store.load(done.id) == nil, "a finished one is remembered for ever")
    try require(try store.load(open.id) == nil, "what has expired is known")
    try store.requireBytes("y", sample(10))
    store = try exam.store()
    try require(try store.load(busy.id)?.offset == 10, "the busy one has lost its bytes")
  }

  static func tellsComplete(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    let whole = try store.begin("x", sample(10), length: 10)
    _ = try store.begin("y", sample(10), length: 11)
    _ = try store.begin("z", sample(10), length: nil)
    _ = try store.receive(sample(10))
    var open = try store.begin("w", sample(10), length: 10)
    open.awaitsEnd = true
    try store.save(open)
    store = try exam.store()
    try require(store.complete() == [whole], "told: \(store.complete())")
    try require(try store.load(open.id)?.record == open, "the record has changed")
    _ = try store.publish(store.reopen(whole.id), whole, isSaved: true)
    try require(store.complete().isEmpty, "told after publishing: \(store.complete())")
  }

  static func countsRoom(_ exam: StoreCheckContext) throws {
    var store = try exam.store(maxTotal: 1000)
    try requireStatus(413, "more than there is") { _ = try store.begin(length: 1001) }
    let promised = try store.begin(length: 600)
    try requireStatus(507, "what is promised") { _ = try store.begin(length: 401) }
    promised.discard()
    let unknown = try store.begin(length: nil)
    try unknown.append(sample(900))
    try requireStatus(413, "past the end of the room") { try unknown.append(sample(101)) }
    try require(unknown.length == 900, "it holds \(unknown.length)")
    unknown.discard()
    try store.publish("a", sample(400))
    try store.publish("a", sample(400))
    try requireStatus(409, "other bytes") { try store.publish("a", sample(400, seed: 1)) }
    try store.publish("a", sample(500, seed: 1), .replace)
    let saved = try store.begin("x", sample(100), length: 300)
    store = try exam.store(maxTotal: 1000)
    try requireStatus(507, "what was there before") { _ = try store.begin(length: 201) }
    try store.publish("b", sample(200))
    let reception = try store.reopen(saved.id)
    try reception.append(sample(200))
    _ = try store.publish(reception, saved, isSaved: true)
    try requireStatus(507, "the last byte") { _ = try store.begin(length: 1) }
    try store.remove(ServedPath("x".utf8))
    try store.publish("c", sample(300))
  }

  static func countsUnfinished(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    func expect(_ count: Int, _ when: String) throws {
      try require(store.unfinished == count, "\(when) \(store.unfinished) are unfinished, not \(count)")
    }
    try expect(0, "in a new place")
    let unsaved = try store.receive(sample(10))
    var first = try store.begin("a", sample(10), length: nil)
    let second = try store.begin("b", sample(10), length: 10)
    let third = try store.begin("a", sample(10, seed: 1), length: 10)
    try expect(3, "once they are saved")
    first.length = 10
    try store.save(first)
    try expect(3, "saved again")
    unsaved.discard()
    store = try exam.store()
    try expect(3, "in another store")
    _ = try store.publish(store.reopen(first.id), first, isSaved: true)
    try expect(2, "after publishing one")
    try requireStatus(409, "other bytes") { _ = try store.publish(store.reopen(third.id), third, isSaved: true) }
    try expect(1, "after one was refused")
    store.delete(second.id)
    store.delete(first.id)
    try expect(0, "after deleting")
  }

  static func interrupts(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    try store.publish("x", sample(1000))
    let twin = try store.begin("x", sample(1000), length: 1000)
    store.interrupt()
    try requireStatus(503, "an interrupted comparison") {
      _ = try store.publish(store.reopen(twin.id), twin, isSaved: true)
    }
    store = try exam.store()
    try require(store.complete() == [twin], "it cannot be published any more")
    let publication = try store.publish(store.reopen(twin.id), twin, isSaved: true)
    try require(publication.outcome == .same, "the outcome is .\(publication.outcome)")
  }

  static func isAlone(_ exam: StoreCheckContext) throws {
    _ = try exam.store()
    try requireStatus(500, "a second store") { _ = try exam.second() }
    exam.close()
    let next = try exam.second()
    next.close()
  }
}
