import BlobHTTP
import Synchronization

/// Finds uploads by id, so that all requests for an upload share one `Upload` object.
final class Uploads: Sendable {
  let store: any UploadStore
  let workers: Workers
  let maxSize: Int64?
  /// Maximum number of unfinished uploads; nil: no limit.
  private let maxUnfinished: Int?
  let counters: UploadCounters
  let groups: UploadGroups
  /// Called with each file that an upload was published as.
  private let onFile: (@Sendable (ReceivedFile) -> Void)?
  /// Time until an upload expires, in nanoseconds.
  let expire: Int64

  enum Found {
    case unfinished(Upload)
    case finished(SavedUpload)
  }

  struct State {
    struct Reference { weak var upload: Upload? }
    var live: [UploadID: Reference] = [:]
    var recent = RecentUploads()
  }
  let state = Mutex(State())
  /// The number of uploads whose first record is being written: the store does not count them yet.
  private let arriving = Mutex(0)

  init(
    _ store: any UploadStore, _ workers: Workers, maxSize: Int64?, maxUnfinished: Int? = nil, expire: Duration,
    _ counters: UploadCounters = UploadCounters(), onFile: (@Sendable (ReceivedFile) -> Void)? = nil
  ) {
    self.counters = counters
    self.onFile = onFile
    self.store = store
    self.workers = workers
    self.maxSize = maxSize
    self.maxUnfinished = maxUnfinished
    self.expire = expire.nanoseconds
    groups = UploadGroups(store.abilities.groups)
    store.abilities.claims?.onRequest { [weak self] id in self?.letGo(id) ?? true }
    store.onShortage { [weak self, workers] work in
      workers.submit { [weak self] in
        self?.tidy()
        work()
      }
    }
  }

  /// Starts an upload to `target`, or to a file named after its id in `folder`. Until it is saved, it exists only for
  /// this request and in this process.
  func begin(
    _ target: ServedPath?, in folder: ServedPath, _ existing: ExistingRule, length: Int64?, metadata: String = "",
    _ concatenation: Concatenation? = nil, modified: ModificationTime? = nil, awaitsEnd: Bool = false,
    group: UploadGroup? = nil
  ) throws(ServerError) -> Upload {
    if let target { try groups.admit(group, target) }
    let id = UploadID.random()
    let target = if let target { target } else { try folder.appending(id.description.utf8) }
    let reception = try store.begin(id, for: target, length: length, modified: modified)
    let record = UploadRecord(
      id, target: target, existing: existing, length: length, metadata: metadata, concatenation, modified: modified,
      awaitsEnd: awaitsEnd, group: group)
    counters.began(record)
    return Upload(record, offset: 0, isSaved: false, reception, self)
  }

  /// Throws 404 for an unknown id; 410 if the upload expired or was terminated, or if its published file no longer
  /// exists or was replaced.
  func find(_ id: UploadID) throws(ServerError) -> Found {
    try claim(id)
    return try state.withLock { (state) throws(ServerError) in
      if let upload = state.live[id]?.upload { return .unfinished(upload) }
      if let known = state.recent[id] {
        guard let known else { throw ServerError(410, "the upload has expired or was terminated") }
        if try store.isStillPublished(known.record) { return .finished(known) }
        store.delete(id)
        state.recent.remember(id, nil)
        throw ServerError(410, "the upload is gone: its file is not the one any more that it was published as")
      }
      let found: SavedUpload?
      do throws(ServerError) {
        found = try store.load(id)
      } catch {
        // The store has deleted it. The next request for it gets the same error, as after a restart of the server.
        if error.status == 410 { state.recent.remember(id, nil) }
        throw error
      }
      guard let saved = found else { throw ServerError(404, "no such upload") }
      if saved.isFinished { return .finished(saved) }
      let upload = Upload(
        saved.record, offset: saved.offset, isSaved: true,
        touched: saved.expires.addingClamped(-saved.record.lifetime(at: saved.offset, expire)), nil, self)
      state.live[id] = State.Reference(upload: upload)
      return .unfinished(upload)
    }
  }

  /// Ends an unfinished upload. A finished one is only forgotten: the published file stays. This call blocks.
  func terminate(_ id: UploadID) throws(ServerError) {
    guard let joining = store.abilities.joining else { return try terminateUnclaimed(id) }
    let claimant = try joining.unlessClaimed(id) { () throws(ServerError) in try terminateUnclaimed(id) }
    guard let claimant else { return }
    // If the final upload has ended, it no longer needs the part.
    if case .unfinished? = try? find(claimant) {
      throw ServerError(409, "the part belongs to the final upload \(claimant), which can be terminated")
    }
    try terminateUnclaimed(id)
  }

  private func terminateUnclaimed(_ id: UploadID) throws(ServerError) {
    switch try find(id) {
    case .unfinished(let upload):
      try upload.terminate()
      for part in upload.record.parts ?? [] { forget(part) }
    case .finished:
      store.delete(id)
      forget(id)
    }
  }

  func add(_ upload: Upload) {
    state.withLock { $0.live[upload.id] = State.Reference(upload: upload) }
  }

  /// Removes the upload without remembering it, so that its id is unknown.
  func dropInvalid(_ record: UploadRecord) {
    counters.failed(record, received: record.length ?? 0)
    state.withLock { $0.live[record.id] = nil }
  }

  func terminated(_ record: UploadRecord, received: Int64) {
    counters.failed(record, received: received)
    forget(record.id)
  }

  func forget(_ id: UploadID) {
    state.withLock { state in
      state.live[id] = nil
      state.recent.remember(id, nil)
    }
    groups.forget(id)
  }

  /// Stores the result of a publication. After an error that can be retried, the upload is unchanged. `sender`: the client
  /// that sent the last bytes, if it is known.
  func ended(_ record: UploadRecord, _ result: Result<Publication, ServerError>, by sender: Sender?) {
    var finished: SavedUpload?
    if case .failure(let error) = result, error.endsUpload, let parts = record.parts {
      store.delete(record.id)
      for part in parts { forget(part) }
    }
    switch result {
    case .success(let publication):
      let file = ReceivedFile(record.target, publication, by: sender)
      counters.finished(file)
      onFile?(file)
      var record = record
      record.published = publication.item.version
      finished = SavedUpload(
        record: record, offset: publication.item.length, isFinished: true,
        expires: wallClock().addingClamped(expire))
    case .failure(let error) where !error.endsUpload: return
    case .failure: counters.failed(record, received: record.length ?? 0)
    }
    state.withLock { state in
      state.live[record.id] = nil
      state.recent.remember(record.id, finished)
    }
    if record.group != nil { groups.forget(record.id) }
    if case .success = result { groups.noteTaken(record.target, in: self) }
  }

  /// Deletes expired uploads and forgets released objects. Blocks; called on a worker.
  func tidy() {
    let busy = state.withLock { state in
      state.live = state.live.filter { $0.value.upload != nil }
      return Set(state.live.keys)
    }
    for id in store.expire(isBusy: { busy.contains($0) }) {
      counters.expired.add(1)
      forget(id)
    }
    // A server that has ended for good publishes nothing at its next start.
    if store.abilities.claims != nil { publishComplete() }
  }

  func publishComplete() {
    for record in store.complete() {
      publishIfComplete(record.id)
    }
  }

  func publishIfComplete(_ id: UploadID) {
    // The upload may be gone meanwhile. If a client is sending bytes, its request publishes the upload at its end.
    guard case .unfinished(let upload)? = try? find(id), upload.isComplete, !upload.isWriting else { return }
    upload.publish { _ in }
  }
}

// MARK: Concatenation

extension Uploads {
  /// Creates and saves a final upload that consists of `parts`. Throws 409 if a part belongs to another one. `digest`:
  /// digests of the whole file from the client, in the form of `Repr-Digest`.
  func begin(
    _ target: ServedPath?, in folder: ServedPath, _ existing: ExistingRule, length: Int64?, metadata: String,
    modified: ModificationTime?, joining parts: [UploadID], text: String, digest: String? = nil, group: UploadGroup?,
    by sender: Sender?
  ) throws(ServerError) -> Upload {
    let id = UploadID.random()
    let target = if let target { target } else { try folder.appending(id.description.utf8) }
    var record = UploadRecord(
      id, target: target, existing: existing, length: length, metadata: metadata, .final(parts, text: text),
      modified: modified, group: group)
    record.digest = digest
    counters.begun.add(1)
    let upload = Upload(record, offset: 0, isSaved: false, by: sender, nil, self)
    // After the claim, a part that gets its last byte looks up this upload, and must not load a second object from the
    // store.
    upload.register()
    do throws(ServerError) {
      try upload.save()
    } catch {
      counters.failed(record, received: 0)
      forget(id)
      throw error
    }
    return upload
  }

  /// Throws 503 if the limit of unfinished uploads is reached.
  func checkUnfinished() throws(ServerError) {
    try arriving.withLock { (arriving) throws(ServerError) in try checkUnfinished(besides: arriving) }
  }

  /// Writes the first record of an upload, which counts as unfinished from now on. Throws 503, and writes nothing, if
  /// the limit is reached: simultaneous requests may all have passed the first check. A final upload is always
  /// accepted, because it finishes its parts.
  func saveNew(_ record: UploadRecord) throws(ServerError) {
    try arriving.withLock { (arriving) throws(ServerError) in
      if record.parts == nil { try checkUnfinished(besides: arriving) }
      arriving += 1
    }
    defer { arriving.withLock { $0 -= 1 } }
    try store.save(record)
  }

  private func checkUnfinished(besides arriving: Int) throws(ServerError) {
    guard let maxUnfinished, store.unfinished + arriving >= maxUnfinished else { return }
    var error = ServerError(
      503,
      "\(maxUnfinished) \(maxUnfinished == 1 ? "upload is" : "uploads are") unfinished, which is the most there may be; "
        + "try again later")
    error.isLackOfUploads = true
    throw error
  }
}
