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
    // Unstructured, because the system may launch the app only to deliver events, and nobody calls a method then.
    Task {
      await opening.set(open())
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
      let entries: [JournalEntry]
      do {
        id = try await journal.destinationID(of: destination, overwrite: settings.overwrite)
        entries = try await journal.unfinished().filter { $0.destinationID == id && !$0.isLeftover }
        try await goOn(with: entries, id)
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

  private func goOn(with entries: [JournalEntry], _ id: Int64) async throws(JournalError) {
    let addedAgain = try await journal.dropAdditionsOfDone().filter { $0.destinationID == id }
    var known: Set<String> = []
    for entry in entries + addedAgain {
      let key = key(of: entry)
      known.insert(key)
      guard [.intent, .open, .done].contains(entry.state), var added = try await added(by: entry) else { continue }
      added.isAgain = added.version != nil && added.version != entry.intent.validator?.version
      seats.take(1)
      await start(added, key, id)
    }
    // Uploads that the journal no longer has were cancelled, or are done.
    for key in service.registry.uploads.subtracting(known) { service.discardAll(of: key) }
    service.registry.dropOthers()
  }

  /// The arguments of an earlier call of `add`, from the journal; nil: `reopening` cannot open the source now.
  func added(by entry: JournalEntry) async throws(JournalError) -> AddedSource? {
    let intent = entry.intent
    guard let source = reopening(intent.source) else { return nil }
    let addition = try await journal.addition(of: entry.id)
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
