import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

// If the server is killed at any instant, or another one has taken the claim while it was stopped, an upload is resumable or finished:
//
//   begin:    The intent to begin a multipart upload is kept before the request, and forgotten with the note of its id. What
//             was begun and is not noted, the next start ends, or any server that shares the records (`S3Intents`).
//   parts:    A part is noted once the bucket has it. Only noted bytes are acknowledged, so a part that is not noted is sent
//             again under the same number.
//   tail:     A tail is noted once the bucket has it. It is only replaced by a longer one with the same beginning, or once
//             the part that begins with it is noted.
//   publish:  The object is completed; only then the record says that the upload is finished. If killed in between, the
//             next start completes it again, finds that the object is its result, and finishes the record.
//   delete:   The record is deleted first, and the notes last. Notes without a record are those of an upload whose parts
//             and tails the next start deletes, or any server that shares the records.
//   claims:   Each note and record is kept under the fence of the claim. A server that has lost the claim deletes what it
//             has stored without a note. No other server uses the number of such a part, or the name of such a tail.
extension S3Store {
  package func begin(
    _ id: UploadID, for target: ServedPath, length: Int64?, modified: ModificationTime?
  ) throws(ServerError) -> any Reception {
    if let length { try quota.reserve(id, promised: length) }
    let reception = S3Reception(id, for: target, modified, StoredBytes(), total: length, under: nil, self)
    state.withLock { state in
      state.receptions[id] = State.Reference(reception: reception)
      state.unsaved[id] = reception
    }
    return reception
  }

  package func reopen(_ id: UploadID) throws(ServerError) -> any Reception {
    if let reception = current(id) { return reception }
    try records.claims?.claim(id, waits: true)
    let fence = records.fence(of: id)
    let kept = try records.load(id)
    // Another server has finished the upload since this one has read its record.
    if kept?.isFinished == true, records.claims != nil { throw .claimIsLost }
    guard let kept, !kept.isFinished else { throw ServerError(410, "the upload is gone") }
    let stored = StoredBytes(notes: try records.notes(of: id))
    let record = kept.record
    // The claim is gone again.
    guard let fence else { throw .claimIsLost }
    let reception = S3Reception(
      id, for: record.target, record.modified, stored, total: record.length, under: fence, self)
    if let earlier = current(id) { return earlier }
    state.withLock { state in
      state.receptions[id] = State.Reference(reception: reception)
      state.untouched.remove(id)
      state.unfinished.insert(id)
    }
    return reception
  }

  /// The reception of the upload that is in use under the claim that this server holds.
  private func current(_ id: UploadID) -> S3Reception? {
    guard let reception = state.withLock({ $0.receptions[id]?.reception }) else { return nil }
    return records.claims == nil || reception.fence == records.fence(of: id) ? reception : nil
  }

  package func save(_ record: UploadRecord) throws(ServerError) {
    try quota.reserve(record.id, promised: record.length ?? 0)
    let (reception, isNew) = state.withLock { state in
      (state.receptions[record.id]?.reception, state.unsaved[record.id] != nil)
    }
    var known = reception?.fence
    if known == nil, !isNew { known = try claimed(record.id) }
    let fence = try records.save(record, under: known)
    state.withLock { state in
      state.unfinished.insert(record.id)
      state.unsaved[record.id] = nil
    }
    try reception?.hasBeenSaved(total: record.length, under: fence)
  }

  /// The fence of an upload that was saved. Throws 503 if another server holds the claim.
  private func claimed(_ id: UploadID) throws(ServerError) -> Int64 {
    try records.claims?.claim(id, waits: false)
    guard let fence = records.fence(of: id) else { throw .claimIsLost }
    return fence
  }

  /// Whether an upload of this run has no record.
  func isUnsaved(_ id: UploadID) -> Bool { state.withLock { $0.unsaved[id] != nil } }

  package func load(_ id: UploadID) throws(ServerError) -> SavedUpload? {
    guard let kept = try records.load(id) else { return nil }
    let now = records.now
    if kept.isFinished {
      let expires = kept.changed.addingClamped(expiry)
      guard let length = kept.record.length, expires > now else { return nil }
      if try !isStillPublished(kept.record) {
        delete(id)
        throw ServerError(410, "the upload is gone: \(kept.record.target) is not the file any more that it became")
      }
      return SavedUpload(record: kept.record, offset: length, isFinished: true, expires: shown(expires, at: now))
    }
    let stored = StoredBytes(notes: try records.notes(of: id))
    let expires = kept.changed.addingClamped(kept.record.lifetime(at: stored.length, expiry))
    if expires <= now {
      delete(id)
      throw ServerError(410, "the upload has expired")
    }
    return SavedUpload(
      record: kept.record, offset: stored.length, isFinished: false, expires: shown(expires, at: now))
  }

  package func isStillPublished(_ record: UploadRecord) throws(ServerError) -> Bool {
    guard let head = try bucket.head(of: record.target) else { return false }
    return record.published?.isVersion(of: StoredItem(head)) ?? false
  }

  package func delete(_ id: UploadID) {
    let reception = state.withLock { state in
      state.unfinished.remove(id)
      state.untouched.remove(id)
      return state.receptions[id]?.reception
    }
    // A finished upload has no claim.
    let fence = reception?.fence ?? (try? claimed(id))
    if !records.deleteRecord(id, under: fence) {
      reception?.hasBeenPassedOn()
      return
    }
    if let reception { return reception.discard() }
    quota.release(id)
    // The next start tries again to read notes that cannot be read now.
    if let notes = try? records.notes(of: id) { discard(id, StoredBytes(notes: notes), isKept: true) }
  }

  package func expire(isBusy: (UploadID) -> Bool) -> [UploadID] {
    records.tidy()
    intents.sweep()
    // If the records cannot be read now, the next round finds these uploads.
    let shared = records.claims == nil ? [] : (try? records.ids(.unsaved)) ?? []
    let leftovers = state.withLock { state in
      defer { state.leftovers = [] }
      return state.leftovers
    }
    for id in leftovers.union(shared) { delete(id) }
    let kept = own
    state.withLock { $0.unfinished.formIntersection(kept) }
    var expired: [UploadID] = []
    for id in (try? records.ids(.expired(expiry))) ?? [] where !isBusy(id) {
      if case .refused? = try? records.claims?.claim(id, waits: false) { continue }
      guard let kept = (try? records.load(id)) ?? nil else { continue }
      // Notes that cannot be read now may be of many bytes.
      let notes = kept.isFinished ? nil : try? records.notes(of: id)
      let lifetime = notes.map { kept.record.lifetime(at: StoredBytes(notes: $0).length, expiry) } ?? expiry
      guard kept.changed.addingClamped(lifetime) <= records.now else { continue }
      delete(id)
      if !kept.isFinished { expired.append(id) }
    }
    return expired
  }

  package func complete() -> [UploadRecord] {
    let ids = records.claims == nil ? state.withLock { $0.unfinished } : (try? records.ids(.unclaimed)) ?? []
    return ids.compactMap { id in
      guard let kept = (try? records.load(id)) ?? nil, !kept.isFinished, let notes = try? records.notes(of: id),
        kept.record.isComplete(at: StoredBytes(notes: notes).length)
      else { return nil }
      return kept.record
    }
  }

  package var unfinished: Int { records.unfinished ?? state.withLock { $0.unfinished.count } }
  package var continued: Int { own.count - state.withLock { $0.untouched.count } }

  /// The saved uploads that are not finished, without those that other servers have gone on with.
  private var own: Set<UploadID> {
    let ids = state.withLock { $0.unfinished }
    return records.claims == nil ? ids : ids.filter { records.fence(of: $0) != nil }
  }

  package func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload] {
    return own.prefix(most).compactMap { id in
      guard let kept = (try? records.load(id)) ?? nil, !kept.isFinished else { return nil }
      let stored = StoredBytes(notes: (try? records.notes(of: id)) ?? [])
      return UnfinishedUpload(
        path: BytePath(kept.record.target.bytes), received: stored.length, length: kept.record.length, isKept: true)
    }.sorted { $0.path < $1.path }
  }
}
