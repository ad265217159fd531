import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

// If the server is killed at any instant, an upload is resumable or finished:
//
//   parts:    A part is noted once the bucket has it. Only noted bytes are acknowledged, so a part that is not noted is sent
//             again under the same number.
//   tail:     A tail is noted once the bucket has it. It is only replaced by a longer one with the same beginning, or once
//             the part that begins with it is noted.
//   publish:  The object is completed; only then the record says that the upload is finished. If killed in between, the
//             next start completes it again, finds that the object is its result, and finishes the record.
//   delete:   The record is deleted first, and the notes last. Notes without a record are those of an upload whose parts
//             and tails the next start deletes.
extension S3Store {
  package func begin(
    _ id: UploadID, for target: ServedPath, length: Int64?, modified: ModificationTime?
  ) throws(ServerError) -> any Reception {
    if let length { try quota.reserve(id, promised: length) }
    let reception = S3Reception(id, for: target, modified, StoredBytes(), total: length, self)
    state.withLock { state in
      state.receptions[id] = State.Reference(reception: reception)
      state.unsaved[id] = reception
    }
    return reception
  }

  package func reopen(_ id: UploadID) throws(ServerError) -> any Reception {
    if let reception = state.withLock({ $0.receptions[id]?.reception }) { return reception }
    guard let kept = try records.load(id), !kept.isFinished else { throw ServerError(410, "the upload is gone") }
    let stored = StoredBytes(notes: try records.notes(of: id))
    let record = kept.record
    let reception = S3Reception(id, for: record.target, record.modified, stored, total: record.length, self)
    return state.withLock { state in
      if let earlier = state.receptions[id]?.reception { return earlier }
      state.receptions[id] = State.Reference(reception: reception)
      state.untouched.remove(id)
      return reception
    }
  }

  package func save(_ record: UploadRecord) throws(ServerError) {
    try quota.reserve(record.id, promised: record.length ?? 0)
    try records.save(record)
    let reception = state.withLock { state in
      state.unfinished.insert(record.id)
      defer { state.unsaved[record.id] = nil }
      return state.receptions[record.id]?.reception
    }
    try reception?.hasBeenSaved(total: record.length)
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
    guard let head = try head(of: record.target) else { return false }
    return record.published?.isVersion(of: StoredItem(head)) ?? false
  }

  package func delete(_ id: UploadID) {
    let reception = state.withLock { state in
      state.unfinished.remove(id)
      state.untouched.remove(id)
      return state.receptions[id]?.reception
    }
    records.deleteRecord(id)
    if let reception { return reception.discard() }
    quota.release(id)
    // The next start tries again to read notes that cannot be read now.
    if let notes = try? records.notes(of: id) { discard(id, StoredBytes(notes: notes)) }
  }

  package func expire(isBusy: (UploadID) -> Bool) -> [UploadID] {
    let leftovers = state.withLock { state in
      defer { state.leftovers = [] }
      return state.leftovers
    }
    for id in leftovers { delete(id) }
    var (now, isAsked) = (wallClock(), false)
    var expired: [UploadID] = []
    for id in (try? records.ids()) ?? [] where !isBusy(id) {
      guard let kept = (try? records.load(id)) ?? nil else { continue }
      // Notes that cannot be read now may be of many bytes.
      let notes = kept.isFinished ? nil : try? records.notes(of: id)
      let lifetime = notes.map { kept.record.lifetime(at: StoredBytes(notes: $0).length, expiry) } ?? expiry
      // The records' clock is asked only if its answer may matter, since the question changes a time on the disk.
      if !isAsked, kept.changed.addingClamped(lifetime) <= now { (now, isAsked) = (records.now, true) }
      guard kept.changed.addingClamped(lifetime) <= now else { continue }
      delete(id)
      if !kept.isFinished { expired.append(id) }
    }
    return expired
  }

  package func complete() -> [UploadRecord] {
    state.withLock { $0.unfinished }.compactMap { id in
      guard let kept = (try? records.load(id)) ?? nil, !kept.isFinished, let notes = try? records.notes(of: id),
        kept.record.isComplete(at: StoredBytes(notes: notes).length)
      else { return nil }
      return kept.record
    }
  }

  package var unfinished: Int { state.withLock { $0.unfinished.count } }
  package var continued: Int { state.withLock { $0.unfinished.count - $0.untouched.count } }

  package func unfinishedUploads(atMost most: Int) -> [UnfinishedUpload] {
    let ids = state.withLock { $0.unfinished }.prefix(most)
    return ids.compactMap { id in
      guard let kept = (try? records.load(id)) ?? nil, !kept.isFinished else { return nil }
      let stored = StoredBytes(notes: (try? records.notes(of: id)) ?? [])
      return UnfinishedUpload(
        path: BytePath(kept.record.target.bytes), received: stored.length, length: kept.record.length, isKept: true)
    }.sorted { $0.path < $1.path }
  }
}
