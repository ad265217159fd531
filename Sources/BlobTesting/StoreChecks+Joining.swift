import BlobServer
import Blobs

/// Checks of final uploads, which are joined from partial uploads.
extension StoreCheck {
  static func joinsParts(_ exam: StoreCheckContext) throws {
    let bytes = sample(600_000)
    for cuts in [[], [1], [0, 250_000, 250_000, 599_999]] {
      let store = try exam.store()
      let parts = try store.parts(bytes, cuts)
      let final = try store.beginFinal("x\(cuts.count)", parts, length: 600_000)
      let reception = try store.ability(\.joining).join(final)
      try require(reception.length == 600_000, "joined it holds \(reception.length)")
      _ = try store.publish(reception, final, isSaved: true)
      try store.requireBytes("x\(cuts.count)", bytes)
      try require(store.unfinished == 0, "\(store.unfinished) are unfinished")
      for store in [store, try exam.store()] {
        try require(try store.load(final.id)?.isFinished == true, "the final upload is not finished")
        for part in parts {
          let saved = try store.load(part.id)
          try require(saved?.isFinished == true && saved?.offset == part.length, "a part is \(saved as Any)")
        }
      }
    }
  }

  static func joinsOverARestart(_ exam: StoreCheckContext) throws {
    let bytes = sample(300_000)
    var store = try exam.store()
    let parts = try store.parts(bytes, [100_000, 200_000])
    let final = try store.beginFinal("x", parts, length: 300_000)
    store = try exam.store()
    try require(try store.load(final.id)?.record == final, "the record has changed")
    try require(try store.load(final.id)?.isFinished == false, "it is finished before its parts are joined")
    try require(store.complete() == [final], "told: \(store.complete())")
    _ = try store.ability(\.joining).join(final)
    store = try exam.store()
    try require(store.complete() == [final], "told once it is joined: \(store.complete())")
    for part in parts { try require(try store.load(part.id)?.offset == 100_000, "a part has lost its bytes") }
    _ = try store.publish(store.ability(\.joining).join(final), final, isSaved: true)
    try store.requireBytes("x", bytes)
  }

  static func claimsPartsOnce(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    let parts = try store.parts(sample(300), [100, 200])
    let final = try store.beginFinal("x", Array(parts[..<2]), length: 200)
    for _ in 0..<2 {
      try require(try store.ability(\.joining).claimant(of: parts[1].id) == final.id, "a claim is forgotten")
      try require(try store.ability(\.joining).claimant(of: parts[2].id) == nil, "more is claimed")
      try requireStatus(409, "a part of another") { _ = try store.beginFinal("y", Array(parts[1...]), length: 200) }
      try require(try store.ability(\.joining).claimant(of: parts[2].id) == nil, "a refusal claims")
      store = try exam.store()
    }
    store.delete(final.id)
    for id in [final.id, parts[0].id, parts[1].id] { try require(try store.load(id) == nil, "it is known") }
    try require(try store.load(parts[2].id)?.offset == 100, "another part is gone")
    try require(store.unfinished == 1, "\(store.unfinished) are unfinished")
  }

  static func countsRoomOfParts(_ exam: StoreCheckContext) throws {
    let bytes = sample(600)
    var store = try exam.store(maxTotal: 1000)
    let parts = try store.parts(bytes, [200, 400])
    let final = try store.beginFinal("x", parts, length: 600)
    try requireStatus(507, "beside the parts") { _ = try store.begin(length: 401) }
    _ = try store.ability(\.joining).join(final)
    store = try exam.store(maxTotal: 1000)
    try requireStatus(507, "beside what is joined") { _ = try store.begin(length: 401) }
    _ = try store.publish(store.ability(\.joining).join(final), final, isSaved: true)
    try requireStatus(507, "beside what is published") { _ = try store.begin(length: 401) }
    let twins = try store.parts(sample(400, seed: 1), [100])
    let twin = try store.beginFinal("y", twins, length: 400)
    store = try exam.store(maxTotal: 1000)
    try requireStatus(507, "a byte more") { _ = try store.begin(length: 1) }
    _ = try store.ability(\.joining).join(twin)
    store.delete(twin.id)
    try store.publish("z", sample(400))
  }

  static func expiresPartsTogether(_ exam: StoreCheckContext) throws {
    var store = try exam.store()
    let parts = try store.parts(sample(300), [100, 200])
    let final = try store.beginFinal("x", Array(parts[..<2]), length: 200)
    store = try exam.store(expire: .zero)
    let busy = parts[0].id
    try require(store.expire { $0 == busy } == [parts[2].id], "a busy part's final has expired, or a free one not")
    try require(
      Set(store.expire { _ in false }) == [final.id, parts[0].id, parts[1].id], "not all of them have expired")
  }
}

extension UploadStore {
  /// Saved and complete partial uploads, cut from `bytes` at these offsets.
  fileprivate func parts(_ bytes: [UInt8], _ cuts: [Int]) throws -> [UploadRecord] {
    try zip([0] + cuts, cuts + [bytes.count]).map { start, end in
      let reception = try begin(length: Int64(end - start))
      let target = try ServedPath(reception.id.description.utf8)
      let record = UploadRecord(reception.id, target: target, length: Int64(end - start), .partial)
      try save(record)
      try reception.append(Array(bytes[start..<end]))
      return record
    }
  }

  fileprivate func beginFinal(_ name: String, _ parts: [UploadRecord], length: Int64) throws -> UploadRecord {
    var random = SystemRandomNumberGenerator()
    let text = "final;" + parts.map { "/\($0.id)" }.joined(separator: " ")
    let record = UploadRecord(
      UploadID(using: &random), target: try ServedPath(name.utf8), length: length,
      .final(parts.map(\.id), text: text))
    try save(record)
    return record
  }
}
