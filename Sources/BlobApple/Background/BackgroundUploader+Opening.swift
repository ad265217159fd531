import BlobUpload
import Blobs

/// An upload in the journal.
struct EarlierUpload {
  var entry: JournalEntry
  /// nil: no uploader of this kind has added it, or not with this version of the app.
  var addition: JournalAddition?
}

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
    let all = try await waiting(at: id)
    for upload in all { if let number = upload.addition?.number { shared.order.note(addition: number) } }
    let uploads = all.filter { isOwn($0.addition) }
    let sources = sources(of: uploads)
    // Another uploader of this process may find those of nobody at the same time.
    let ofNobody = sources.map(\.upload).filter { $0.addition?.uploader == nil }.map(\.entry.id)
    let lost = try await Set(ofNobody).subtracting(journal.assign(ofNobody, from: nil, to: identifier))
    let known = Set(uploads.filter { !lost.contains($0.entry.id) }.map { key(of: $0.entry) })
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
      let uploads = try await waiting(at: id).filter { $0.addition?.uploader == identifier }
      let ids = try await journal.assign(uploads.map(\.entry.id), from: identifier, to: self.identifier)
      await begin(sources(of: uploads.filter { ids.contains($0.entry.id) }), id)
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Begins uploads of earlier launches, in the order in which their sources were added: so they have their turns at their
  /// places. Of those of an earlier version, which has not kept the order, the ones that have requests at the system are first.
  private func begin(_ sources: [(upload: EarlierUpload, source: AddedSource)], _ id: Int64) async {
    let running = service.registry.uploads
    let numbered = sources.map { upload, source in
      let key = key(of: upload.entry)
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
    let queue = UploadQueue(Uploader(destination, transport: service.direct), journal: journal, destinationID: id)
    // Unstructured, because nobody waits for it: the server may not answer. The next launch tries again.
    Task { await queue.deleteLeftovers(failures: 2) }
  }

  // MARK: What the journal has

  /// Whether this uploader goes on with the upload, or none does: then it was not added by an uploader of this kind.
  func isOwn(_ addition: JournalAddition?) -> Bool {
    guard let uploader = addition?.uploader else { return true }
    return uploader == identifier
  }

  /// The uploads that have not ended or have failed, of all uploaders.
  func unfinished(at id: Int64) async throws(JournalError) -> [EarlierUpload] {
    try await withAdditions(journal.unfinished(at: [id]).filter { !$0.isLeftover })
  }

  /// The same, and those that have ended and whose sources were added again since.
  private func waiting(at id: Int64) async throws(JournalError) -> [EarlierUpload] {
    let again = try await journal.dropAdditionsOfDone().filter { $0.destinationID == id }
    return try await unfinished(at: id) + withAdditions(again)
  }

  private func withAdditions(_ entries: [JournalEntry]) async throws(JournalError) -> [EarlierUpload] {
    let additions = try await journal.additions(of: entries.map(\.id))
    return entries.map { EarlierUpload(entry: $0, addition: additions[$0.id]) }
  }

  /// The uploads that go on by themselves, and whose sources can be opened now.
  private func sources(of uploads: [EarlierUpload]) -> [(upload: EarlierUpload, source: AddedSource)] {
    uploads.filter { [.intent, .open, .done].contains($0.entry.state) || $0.entry.isSuperseded }.compactMap { upload in
      guard var source = added(upload) else { return nil }
      source.isAgain =
        upload.addition?.isAgain == true
        || source.version != nil && source.version != upload.entry.intent.validator?.version
      return (upload, source)
    }
  }

  /// The arguments of an earlier call of `add`, from the journal; nil: `reopening` cannot open the source now.
  func added(_ upload: EarlierUpload) -> AddedSource? {
    let (intent, addition) = (upload.entry.intent, upload.addition)
    guard let source = reopening(intent.source) else { return nil }
    var added = AddedSource(
      source: source, identity: intent.source, name: intent.path,
      contentType: addition?.contentType ?? intent.contentType, metadata: addition?.metadata ?? [:])
    added.version = addition?.version
    return added
  }

  func key(of entry: JournalEntry) -> String {
    let intent = entry.intent
    return TaskLabel.upload(of: intent.source, to: intent.target, recipient: intent.recipient)
  }
}
