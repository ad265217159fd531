import BlobUpload
import Blobs

/// The steps at the launch of a `BackgroundUploader` that must not be repeated.
struct OpeningSteps {
  /// The pieces that were found in the spool, once it was read.
  var pieces: [TaskLabel]?
  /// The system's session exists, of which there may be one only.
  var isConnected = false
}

// Opens the journal and the spool, and goes on with the uploads that earlier processes have left.
extension BackgroundUploader {
  /// Why the uploads of earlier launches cannot go on, for example a spool or a journal that cannot be read while the device
  /// is locked; nil: they can, or are about to. `add`, `cancel`, `events` and `handleEvents` try again.
  public var problem: UploadError? { opening.failure }

  /// Begins to take over what earlier processes have left, unless that was done or is under way.
  func tryToOpen() {
    guard opening.begin() else { return }
    service.wakeUp.enter()
    shared.cancelled.beginOpening(identifier)
    // Unstructured, because the system may launch the app only to deliver events, and nobody calls a method then.
    Task {
      await opening.set(open())
      shared.cancelled.endOpening(identifier)
      service.wakeUp.leave()
    }
  }

  /// The id of the destination in the journal, once everything that earlier processes left is known.
  func destinationID() async throws(UploadError) -> Int64 {
    tryToOpen()
    return try await opening.value()
  }

  private func open() async -> Result<Int64, UploadError> {
    do throws(UploadError) {
      try await connect()
      let id: Int64
      do {
        id = try await journal.destinationID(of: destination, overwrite: settings.overwrite)
        try await goOn(id)
      } catch {
        throw UploadError(journal: error)
      }
      // Unstructured: the events may also come before that, or never.
      Task { [settings, registry = service.registry] in
        // Nothing cancels this task.
        try? await Task.sleep(for: settings.settling)
        registry.settle()
      }
      return .success(id)
    } catch {
      return .failure(error)
    }
  }

  /// Reads the spool, and receives the system's events from then on.
  private func connect() async throws(UploadError) {
    let pieces: [TaskLabel]
    if let found = opened.withLock({ $0.pieces }) {
      pieces = found
    } else {
      pieces = try await readingSource { [service] _, _ throws(BlobError) in
        try service.spool.sweep()
      }
      opened.withLock { $0.pieces = pieces }
    }
    if opened.withLock({ $0.isConnected }) { return }
    let running = await service.tasks.connect(service.registry)
    for text in running where TaskLabel(text) == nil { service.tasks.cancel(text) {} }
    service.registry.begin(running: running.compactMap { TaskLabel($0) }, pieces: pieces)
    opened.withLock { $0.isConnected = true }
  }

  private func goOn(_ id: Int64) async throws(JournalError) {
    let all = try await earlier.waiting(at: id)
    for upload in all { if let number = upload.addition?.number { shared.order.note(addition: number) } }
    let uploads = all.filter { earlier.isOwn($0.addition) }
    let sources = earlier.sources(of: uploads)
    // Another uploader of this process may find those of nobody at the same time.
    let ofNobody = sources.map(\.upload).filter { $0.addition?.uploader == nil }.map(\.entry.id)
    let lost = try await Set(ofNobody).subtracting(journal.additions.assign(ofNobody, from: nil, to: identifier))
    let known = Set(uploads.filter { !lost.contains($0.entry.id) }.map { earlier.key(of: $0.entry) })
    await begin(sources.filter { !lost.contains($0.upload.entry.id) }, id)
    // The others are done, were cancelled, or belong to another uploader.
    for key in service.registry.uploads.subtracting(known) { service.discardAll(of: key) }
    service.registry.dropOthers()
    deleteLeftovers(id)
  }

  /// Goes on with the uploads of an earlier uploader that had another identifier, for example one of an earlier version of the app.
  /// Until this is called they stay in the journal; only `add`, of the same source, goes on with one of them. The requests that
  /// the system has under that identifier are not known here, so it may send bytes twice.
  /// - Throws if this process has an uploader with that identifier, or the journal cannot be used.
  public func adopt(uploadsOf identifier: String) async throws(UploadError) {
    if identifier == self.identifier { return }
    if identifiers?.has(identifier) == true {
      throw UploadError(
        .giveUp, .destination,
        "background session \"\(identifier)\": this process has an uploader that goes on with its uploads")
    }
    let id = try await destinationID()
    service.wakeUp.enter()
    defer { service.wakeUp.leave() }
    do {
      let uploads = try await earlier.waiting(at: id).filter { $0.addition?.uploader == identifier }
      let ids = try await journal.additions.assign(uploads.map(\.entry.id), from: identifier, to: self.identifier)
      await begin(earlier.sources(of: uploads.filter { ids.contains($0.entry.id) }), id)
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Begins uploads of earlier launches, in the order in which their sources were added: so they have their turns at their
  /// places. Of those of an earlier version, which has not kept the order, the ones that have requests at the system are first.
  private func begin(_ sources: [(upload: EarlierUpload, source: AddedSource)], _ id: Int64) async {
    let running = service.registry.uploads
    let numbered = sources.map { upload, source in
      let key = earlier.key(of: upload.entry)
      return (
        rank: (upload.addition?.number ?? 0, running.contains(key) ? 0 : 1, upload.entry.id), key: key, source: source
      )
    }
    for (_, key, source) in numbered.sorted(by: { $0.rank < $1.rank }) {
      seats.take(1)
      await start(source, key, id)
    }
  }

  /// Deletes at the server what earlier launches could not delete, for example because they were terminated.
  private func deleteLeftovers(_ id: Int64) {
    let leftovers = Leftovers(Uploader(destination, transport: service.direct), journal: journal, destinationID: id)
    // Unstructured, because nobody waits for it: the server may not answer. The next launch tries again.
    Task { await leftovers.deleteAll(failures: 2) }
  }

  // MARK: Uploads that have ended, and the end of uploads

  /// The uploads to this destination that have finished at this time or later, in seconds since 1970, in this launch or
  /// an earlier one. Each has the time in `ended`; they are in the order in which they were added.
  ///
  /// `events` tells only those that finish while a loop reads it, and the system may upload in the night, with the app
  /// launched in the background. To show those as well, call this when the app comes to the front, after `events`, with the
  /// time of the call before, which the app must keep. One that `events` has told since that call is told again. Those of an `Uploader`, and of uploaders with other identifiers, to the same
  /// destination are among them; those of other accounts are not. Of a source that was uploaded in several versions, the last
  /// one is told.
  public func finished(since time: Int64) async throws(UploadError) -> [BackgroundUpload] {
    try await earlier.finished(at: destinationID(), since: time)
  }

  /// The uploads to this destination that were given up, in this launch or an earlier one, and were not added again: the
  /// oldest first, each with its reason. Those of an `Uploader` to the same destination are among them, and those of other
  /// accounts and of uploaders with other identifiers are not. `cancelAll` forgets them.
  public func failures() async throws(UploadError) -> [BackgroundUpload] {
    try await failed().map(\.failure)
  }

  /// Adds the sources again whose uploads as `name` were given up, with the type and the metadata that they were added with.
  /// The sources are opened by `reopening`. Does nothing if no such upload was given up.
  /// - Throws as `add`, and if a source cannot be opened now.
  public func tryAgain(_ name: BytePath) async throws(UploadError) {
    for upload in try await failed() where upload.entry.intent.path == name {
      guard let again = earlier.added(upload) else {
        throw UploadError(.giveUp, .source, "\(name): its source cannot be opened now, since `reopening` gives none")
      }
      try await add(again)
    }
  }

  private func failed() async throws(UploadError) -> [EarlierUpload] {
    let id = try await destinationID()
    do {
      // How an upload has ended is written a little later.
      try await journal.flush()
      return try await earlier.unfinished(at: id).filter { upload in
        let entry = upload.entry
        return entry.state == .failed && earlier.isOwn(upload.addition) && !entry.isClaimed
          && !board.isRunning(earlier.key(of: entry))
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Ends an upload, and deletes what the server has of it and its entry in the journal. Returns once this is done, or
  /// the server does not answer; then the server's part of the upload expires.
  /// A call of `add` that still looks at its source, or waits for other uploads, returns without an upload.
  /// A source that is added after this call has begun is another upload, and does not wait for the deletion.
  public func cancel(_ name: BytePath) async throws(UploadError) { try await cancel(named: name) }

  /// Ends all uploads of this uploader as `cancel` ends one, also those of earlier launches whose sources were not opened,
  /// versions that wait for the end of an earlier one, and what uploads of an `Uploader` to this destination have left. Those
  /// that an uploader with another identifier has added last go on.
  /// For a user who signs out: call it while the credentials are still valid, since the server does not delete anything without
  /// them. What was uploaded stays, and counts as uploaded.
  public func cancelAll() async throws(UploadError) { try await cancel(named: nil) }

  /// nil: all.
  private func cancel(named name: BytePath?) async throws(UploadError) {
    // Calls of `add` from here on are other uploads, while the first one of this process may still open the journal.
    let last = board.lastSeat
    let id = try await destinationID()
    for task in board.cancel(name, upTo: last) { await task.value }
    try await remove(id, areMany: name == nil) { name == nil || $0.intent.path == name }
  }

  /// Deletes what the server, the system and the journal have of uploads that do not run, unless they were added again
  /// meanwhile. The journal is first: what is added from then on does not wait for the server.
  func remove(
    _ id: Int64, areMany: Bool = false, where isMeant: @escaping @Sendable (JournalEntry) -> Bool
  ) async throws(UploadError) {
    let tasks = service.registry.pending()
    let direct = Uploader(destination, transport: service.direct)
    var answers = true
    do {
      let entries = try await journal.giveUp(at: id) { [self] entry, addition in
        let key = earlier.key(of: entry)
        // Another uploader of this process may have added the same source before, and sends it all the same.
        return isMeant(entry) && earlier.isOwn(addition) && !board.isActive(key) && !shared.order.has(key)
      }
      let keys = Set(entries.map { earlier.key(of: $0) })
      for task in tasks where keys.contains(task.upload) { service.discard(task) }
      for entry in entries {
        guard let session = entry.session else { continue }
        // A server that does not answer is not waited for once more for each of many uploads.
        if answers { answers = await direct.discard(session) || !areMany }
        try await journal.remove([entry.id])
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// The version is uploaded after the one that is being sent, also if the app is terminated in between.
  func keepAddition(_ added: AddedSource, _ item: UploadItem) async throws(UploadError) {
    do { try await journal.additions.keep(addition(of: added, isAgain: true), of: item.intent()) } catch {
      throw UploadError(journal: error)
    }
  }

  func addition(of added: AddedSource, isAgain: Bool = false) -> JournalAddition {
    added.addition(by: identifier, number: shared.order.nextAddition(), isAgain: isAgain)
  }

  /// The source was uploaded after another version had been sent, or is not uploaded any more.
  func forgetAddition(_ added: AddedSource) async {
    guard let version = added.version else { return }
    let item = turns.item(added, BlobInfo(length: nil))
    // Where the journal cannot be written, the next launch finds that the version is done.
    try? await journal.additions.drop(ofVersion: version, item.intent())
  }
}
