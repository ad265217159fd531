import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs
import Synchronization

/// Stores files as objects of a bucket, and unfinished uploads as multipart uploads. The records of uploads are in a folder
/// of this computer, or in a database that several servers share; nothing of a file is.
///
/// Folders are the beginnings of names: a file and a folder of one name do not exclude each other. What is replaced or
/// deleted while a client reads it ends that response.
package final class S3Store: UploadStore, FileRemoval {
  let bucket: S3Bucket
  private let health: BucketHealth
  let records: any RecordKeeping
  let expiry: Int64
  let memory = MemoryBudget(20 << 20)
  let quota: Quota
  let conditions = WriteConditions()
  let concealment: Concealment
  let intents: S3Intents
  private let interruption = Cancellation()
  struct State {
    struct Reference { weak var reception: S3Reception? }
    /// Receptions that are in use. Those without a record are in `unsaved`, too.
    var receptions: [UploadID: Reference] = [:]
    var unsaved: [UploadID: S3Reception] = [:]
    /// Saved uploads that are not finished.
    var unfinished: Set<UploadID> = []
    /// The saved uploads of earlier runs that nobody has continued.
    var untouched: Set<UploadID> = []
    /// Uploads of an earlier run that were never saved.
    var leftovers: Set<UploadID> = []
  }
  let state = Mutex(State())
  /// For records that are in a database.
  private static let threads = BlockingPool("fullbore-state", threads: 2)
  /// Deletions in the bucket that nobody waits for.
  private let deletions = Monitor(0)

  /// The most bytes of a file that is in memory until it is sent with one request.
  static let mostInMemory: Int64 = 128 << 10

  /// `destination`: in S3, its endpoint ends in a slash. `records`: where the uploads are kept; the store closes them when it
  /// is closed, or if this throws. `maxTotal`: the most bytes of all files together, if no other server stores any. `conceals`:
  /// clients may not know the files. `isReadOnly`: no file is stored. `probing`: how long `problem` believes the last request
  /// to the bucket. Blocks for a short time; with `maxTotal` until all objects were listed.
  package init(
    _ destination: UploadDestination, over transport: any Transport, _ records: any RecordKeeping, expire: Duration,
    maxTotal: Int64? = nil, conceals: Bool = false, isReadOnly: Bool = false, probing: Duration = .seconds(10)
  ) throws(ServerError) {
    (quota, concealment) = (Quota(maxTotal), Concealment(isOn: conceals))
    health = BucketHealth(transport, stores: !isReadOnly, rest: probing)
    bucket = S3Bucket(destination, over: health)
    self.records = records
    expiry = expire.nanoseconds
    intents = S3Intents(bucket, records, expiry: expiry)
    do throws(ServerError) {
      // Others share the uploads in a database, which has all of them, and this server those that it goes on with.
      if records.claims == nil { try takeUp() }
    } catch {
      records.close()
      throw error
    }
  }

  /// Takes up what an earlier run has left.
  private func takeUp() throws(ServerError) {
    let found = try records.ids([.unsaved, .unclaimed])
    let unfinished = found[1]
    state.withLock { state in
      state.leftovers = found[0]
      (state.unfinished, state.untouched) = (unfinished, unfinished)
    }
    if quota.isLimited { try measure(unfinished) }
  }

  private func measure(_ unfinished: Set<UploadID>) throws(ServerError) {
    var shares: [UploadID: Quota.Share] = [:]
    for id in unfinished {
      let promised = try records.load(id)?.record.length ?? 0
      shares[id] = Quota.Share(promised: promised, held: StoredBytes(notes: try records.notes(of: id)).length)
    }
    try quota.measure(
      shares,
      published: { [bucket, interruption] () throws(ServerError) in
        try bucket.totalLength(until: interruption)
      })
  }

  package var abilities: StoreAbilities {
    StoreAbilities(
      removal: self, listing: S3Lister(bucket: bucket, interruption: interruption), digests: reader,
      claims: records.claims, waitsForNetwork: true)
  }

  /// The size of a part in bytes. Later parts are larger, so that an upload of any length has at most 10,000.
  func partSize(of number: Int) -> Int64 { (8 << 20) << Int64(number / 1000) }

  /// The least bytes of a part that is not the last one. The server refuses fewer than 5 MiB.
  func leastPart(of number: Int) -> Int64 { max(5 << 20, partSize(of: number) / 2) }

  /// Reads whole objects.
  var reader: S3ObjectReader { S3ObjectReader(interruption: interruption) }
  var tails: S3Tails { S3Tails(bucket: bucket) }

  // MARK: Room and operation

  package var free: Int64? { quota.free }
  package var isBoundByLimit: Bool { quota.isLimited }
  package func takeRefusal() -> Bool { quota.takeRefusal() }
  package func onShortage(_ submit: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void) {
    quota.onShortage(submit)
  }

  package var problem: String? {
    health.probeIfDue { [bucket] in await bucket.probe() }
    return records.problem ?? health.problem
  }
  package func lookAgain() -> [String] { intents.takeNotices() + records.takeNotices() }
  package var isInterrupted: Bool { interruption.isCancelled }
  package func interrupt() { interruption.cancel() }

  /// Waits for running deletions, 10 s at most; the next server goes on with others.
  package func close() {
    let left = state.withLock { state in
      defer { state.unsaved = [:] }
      return Array(state.unsaved.values)
    }
    for reception in left { reception.retreat() }
    _ = deletions.wait(atMost: .seconds(10)) { $0 == 0 ? () : nil }
    records.close()
  }

  // MARK: Deleting

  /// Deletes the bytes of an upload that has ended, and its notes at last. `isKept`: whether there may be notes. Does not
  /// block.
  func discard(_ id: UploadID, _ stored: StoredBytes, isKept: Bool) {
    state.withLock { state in
      (state.receptions[id], state.unsaved[id]) = (nil, nil)
    }
    quota.release(id)
    if !isKept { return }
    deletions.update { $0 += 1 }
    Task { [self] in
      defer { deletions.update { $0 -= 1 } }
      // The notes stay if the bucket cannot be reached, and the next start of the server tries again.
      if (try? await delete(id, stored)) != nil { await Self.threads.run { [records] in records.delete(id) } }
    }
  }

  private func delete(_ id: UploadID, _ stored: StoredBytes) async throws(UploadError) {
    if let session = bucket.session(of: stored) { try await bucket.s3.abort(session, bucket.context) }
    try await tails.delete(of: id, stored)
  }

  // MARK: Files

  package func item(at path: ServedPath) throws(ServerError) -> StoredItem? {
    if path.isRoot { return .folder }
    if let head = try bucket.head(of: path) { return StoredItem(head) }
    let folder = bucket.folder(path)
    let page = try bucket.wait { s3, context async throws(UploadError) in
      try await s3.page(of: folder, most: 1, context)
    }
    return page?.entries.isEmpty == false ? .folder : nil
  }

  package func target(at path: ServedPath?, in folder: ServedPath) throws(ServerError) -> TargetState {
    try concealment.target(at: path, in: folder) { () throws(ServerError) in try target(at: path) }
  }

  private func target(at path: ServedPath?) throws(ServerError) -> TargetState {
    guard let path else { return TargetState() }
    if path.isRoot { return TargetState(item: .folder) }
    guard String(validating: path.bytes, as: UTF8.self) != nil else {
      throw ServerError(400, "\(path): a name in S3 is UTF-8")
    }
    return TargetState(item: try bucket.head(of: path).map { StoredItem($0) })
  }

  package func open(_ path: ServedPath) throws(ServerError) -> OpenItem {
    if !path.isRoot, let head = try bucket.head(of: path) {
      let content = S3Content(bucket: bucket, url: bucket.url(of: path), tag: head.tag)
      return OpenItem(item: StoredItem(head), content: .remote(content))
    }
    if try item(at: path)?.isFolder == true { throw ServerError(409, "\(path) is a folder") }
    throw ServerError(404, "nothing is at \(path)")
  }

  package func remove(
    _ path: ServedPath, _ check: (StoredItem) throws(ServerError) -> Void
  ) throws(ServerError) {
    guard !path.isRoot, let head = try bucket.head(of: path) else { throw ServerError(404, "no file \(path)") }
    try check(StoredItem(head))
    let url = bucket.url(of: path)
    try bucket.wait { s3, context async throws(UploadError) in try await s3.delete(url, context) }
    quota.remove(head.length)
  }
}
