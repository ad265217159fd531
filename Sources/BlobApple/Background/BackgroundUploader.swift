import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// Uploads sources while the app is suspended, and after the system has terminated it, by tus or the IETF's protocol.
///
/// The system sends bodies from files only, so pieces of a source are copied into a spool of bounded size and deleted
/// once the server has answered. What is known of an upload is in the journal. Create one uploader for each session
/// identifier when the app is launched, also when the system launches it: uploads that earlier processes have left go on
/// by themselves, their requests that the system still has are not sent again, and the bytes of two versions of a source
/// are never mixed. A user who ends the app in the app switcher ends its requests; the next launch goes on. An upload belongs
/// to the identifier whose uploader has added it last, so an app may have several in one journal, for example one session
/// that uses mobile data and one that does not.
///
/// The system sends a piece while the app is suspended, but only the app can make the next one, from its source. When the
/// system wakes it for that, there are about 30 s. If the app is suspended before the piece is made, nothing wakes it again,
/// and the upload goes on when the app is next opened. So ask for more time: with `beginBackgroundTask` when the app leaves
/// the foreground and `uploads` is not empty, and for sources that are slow in their middle after a launch, as films of the
/// photo library are, with a `BGProcessingTask`. This class asks for neither.
///
/// By what is reported, the system wakes the app only when all tasks of the session have ended. An upload whose server asks
/// for a pause has a task that begins after it, by up to an hour, so the others may wait for it until the app is opened.
///
/// All methods may be called on any thread. Sources are read on threads of the uploader, and are opened for each piece.
public final class BackgroundUploader: Sendable {
  /// The usual bound of the spool: 256 MiB.
  public static let usualSpool: Int64 = 256 << 20
  /// Uploads that run at once; others wait. Many small files at once keep the system busy while the app is suspended.
  private static let mostAtOnce: Int64 = 32

  /// Identifies the background session.
  public var identifier: String { service.session }
  let turns: UploadTurns
  let earlier: EarlierUploads
  var destination: UploadDestination { turns.destination }
  var journal: Journal { turns.journal }
  var settings: BackgroundSettings { turns.settings }
  var service: BackgroundService { turns.service }
  var board: UploadBoard { turns.board }
  /// Shared with other uploaders of this process.
  let shared: SharedPlaces
  let places: SpoolRoom
  /// How many further uploads this process may hold, running or waiting for a place.
  let seats: SpoolRoom
  /// The id of the destination in the journal, once everything that earlier processes left is known.
  let opening = OneTimeResult<Int64>()
  /// The steps of the opening that have succeeded, and are not repeated.
  let opened = Mutex(OpeningSteps())
  /// The identifiers of which this process has made uploaders; nil: unknown.
  let identifiers: SessionIdentifiers?

  init(
    _ identifier: String, _ destination: UploadDestination, journal: Journal, tasks: any BackgroundTasks,
    direct: any Transport, settings: BackgroundSettings, identifiers: SessionIdentifiers? = nil,
    reopening: @escaping @Sendable (BytePath) -> (any BlobSource)?
  ) throws(UploadError) {
    let destination = try settings.adapt(destination)
    try identifiers?.use(identifier)
    self.identifiers = identifiers
    shared = SharedPlaces.of(journal, account: destination.account)
    let wakeUp = WakeUp()
    let spool = PieceSpool(settings.spool, bound: settings.spoolBytes, wakeUp, write: settings.write)
    let service = BackgroundService(
      session: identifier, tasks: tasks, registry: TaskRegistry(spool, wakeUp, shared.cancelled),
      cancelled: shared.cancelled, spool: spool,
      wakeUp: wakeUp, direct: direct, cancelling: settings.cancelling)
    turns = UploadTurns(
      destination: destination, journal: journal, settings: settings, service: service,
      board: UploadBoard(shared.order))
    earlier = EarlierUploads(journal: journal, identifier: identifier, reopening: reopening)
    places = SpoolRoom(Self.mostAtOnce, wakeUp)
    seats = SpoolRoom(settings.mostUploads, wakeUp)
    tryToOpen()
  }

  /// Uploads `source` as `name` below the destination. Returns once the upload is in the journal, so that it survives
  /// the termination of the app, and fewer than 1,000 others have not ended: so memory does not grow with a library that is
  /// added in a loop. A source that is being uploaded already, or was uploaded before and has not changed, is not sent again;
  /// another version of one that is being uploaded is sent after it, or in its place if that can no longer be read. Of calls
  /// for one source that wait for other uploads, the last one counts. Of several sources for one name, the one that was added
  /// last is stored last, if all are added to uploaders over one `Journal` object: an `Uploader` has no part in this order. An
  /// upload that waits because the server has refused
  /// the credentials is tried at once.
  ///
  /// If the calling task is cancelled while it waits, the next launch goes on with the upload. If `cancel` ends the upload
  /// meanwhile, it returns.
  ///
  /// - `identity`: identifies the source in later launches, for `reopening`; nil: the path of a file, or else `name`.
  /// - `metadata`: as `UploadTarget.metadata`.
  /// - Throws if the source cannot be read, can be read only once, or the journal or spool cannot be used; the next call
  ///   tries these again. What fails later comes through `events`.
  public func add(
    _ source: any BlobSource, as name: BytePath, identity: BytePath? = nil,
    contentType: String = "application/octet-stream", metadata: [String: String] = [:]
  ) async throws(UploadError) {
    let identity = identity ?? (source as? FileSource)?.path.absolute() ?? name
    guard source.access == .random else {
      throw UploadError(
        .giveUp, .source, "\(name): a source that is read only once cannot be uploaded in the background")
    }
    try await add(
      AddedSource(source: source, identity: identity, name: name, contentType: contentType, metadata: metadata))
  }

  func add(_ added: AddedSource) async throws(UploadError) {
    var added = added
    let key = turns.item(added, BlobInfo(length: nil)).key
    // `cancel` finds the call from here on.
    let seat = board.takeSeat(added.name, key)
    defer { board.leaveSeat(seat) }
    var entered: Int64?
    do {
      let id = try await destinationID()
      let item = try await turns.item(added)
      added.version = item.info.validator?.version
      added.label = item.info.validator.map { _ in TaskLabel.version(item.info) }
      guard board.hasLooked(seat) else { return }
      entered = id
      try await enter(added, item, id, seat)
    } catch {
      // `cancel` may have removed the entry meanwhile.
      if !board.isCancelled(seat) { throw error }
    }
    // `cancel` may have come before the entry was in the journal.
    if let entered, board.isCancelled(seat) { try await remove(entered) { [self] in earlier.key(of: $0) == key } }
  }

  /// Writes the upload into the journal, and starts it once there is a seat.
  private func enter(_ added: AddedSource, _ item: UploadItem, _ id: Int64, _ seat: Int) async throws(UploadError) {
    var added = added
    switch await join(added, item.key, seat) {
    case .same: return
    case .another: return try await keepAddition(added, item)
    case .nothing, .ending: break
    }
    do {
      // The upload claims its entry when its turn comes, perhaps in a later process.
      for claim in try await journal.claim([item.intent()], destination: id, sends: false) {
        switch claim {
        case .busy:
          // Another upload has the entry, for example one of an `Uploader`. A later process uploads this version after it.
          try await journal.additions.keep(addition(of: added), of: item.intent())
        case .done(let entry) where entry.isSuperseded || board.hasOthers(than: item.key):
          // Another source has the place, or will have it. A later process asks the server, or uploads this one again.
          added.isAgain = true
          try await journal.additions.keep(addition(of: added, isAgain: true), of: entry.id)
        case .done: break
        case .fresh, .replaced, .resume, .unsure:
          // The first one is that of this upload, and any other that of what it replaces.
          if let id = claim.ids.first { try await journal.additions.keep(addition(of: added), of: id) }
        }
        for id in claim.ids { journal.released(id) }
      }
      try await journal.flush()
    } catch {
      throw UploadError(journal: error)
    }
    // While it waits for the end of another upload, it does not keep the app awake.
    service.wakeUp.enter()
    defer { service.wakeUp.leave() }
    let reservation = Task { [seats] in await seats.reserve(1) }
    board.setReservation(reservation, for: added, of: seat)
    let hasSeat = await withTaskCancellationHandler {
      await reservation.value
    } onCancel: {
      reservation.cancel()
    }
    if hasSeat, case .another = await start(added, item.key, id, seat: seat) { try await keepAddition(added, item) }
  }

  /// Tries the uploads at once that wait because the server has refused their credentials, for example when the user has
  /// signed in again and `rereading` gives a new token. Other pauses go on.
  public func tryAgain() { board.endPauses() }

  /// The state of every upload from now on: at first of those that are running, then each change. Of the changes that were
  /// not read yet, only the newest of each upload is kept, and how each upload has ended. The sequence does not end by itself.
  public func events() -> AsyncStream<BackgroundUpload> {
    tryToOpen()
    return board.listen()
  }

  /// The uploads that have not ended, in no particular order.
  public var uploads: [BackgroundUpload] { board.uploads }

  /// For `application(_:handleEventsForBackgroundURLSession:completionHandler:)`. Calls `completionHandler` once, on the
  /// main actor: when all events were delivered and what follows from them was given to the system, or after 20 s.
  /// Returns false, and calls nothing, if `identifier` is that of another session.
  @MainActor @discardableResult
  public func handleEvents(identifier: String, completionHandler: @escaping () -> Void) -> Bool {
    if identifier != self.identifier { return false }
    tryToOpen()
    let handler = MainActorHandler(completionHandler)
    service.wakeUp.handle(within: settings.handlerLimit) { [journal] in
      // Unstructured, because it is called from the system's callbacks.
      Task {
        // Where the journal cannot be written, the next launch asks the server instead.
        try? await journal.flush()
        await handler.call()
      }
    }
    return true
  }

  // MARK: One upload

  /// Adds the source to the upload that runs already. Waits for the end of one that was cancelled.
  private func join(_ added: AddedSource, _ key: String, _ seat: Int?) async -> UploadBoard.Present {
    while true {
      let present = board.add(added, to: key, seat: seat)
      guard case .ending(let upload) = present else { return present }
      await upload.value
    }
  }

  /// Starts an upload that has room among `seats`, which it gives back at its end. If it runs already, adds the source to it;
  /// returns what it found. `seat`: the upload does not begin if that was cancelled or replaced.
  @discardableResult
  func start(_ added: AddedSource, _ key: String, _ id: Int64, seat: Int? = nil) async -> UploadBoard.Present {
    while true {
      switch begin(added, key, id, seat) {
      case .began: return .nothing
      case .isGivenUp:
        seats.release(1)
        return .nothing
      case .runsAlready:
        let present = await join(added, key, seat)
        if case .nothing = present { continue }
        seats.release(1)
        return present
      }
    }
  }

  private func begin(_ added: AddedSource, _ key: String, _ id: Int64, _ seat: Int?) -> UploadBoard.Beginning {
    board.start(key, added, seat: seat) { added, isFirst in
      service.wakeUp.enter()
      service.registry.start(key)
      // An upload with pieces in the spool must not wait for those that wait for room there.
      let hasPieces = isFirst && service.registry.pending(key).contains { $0.length != nil }
      if hasPieces { places.take(1) }
      // Unstructured, because uploads go on after `add` has returned; `cancel` ends them.
      return Task {
        // Others are sent first, and those wait for the ends of all tasks for the place.
        if !isFirst { service.discardAll(of: key) }
        await board.waitForTurn(key, service.wakeUp)
        // A wait that is cancelled ends before.
        if board.isFirst(key) { service.discardOthers(than: key) }
        var hasPlace = if hasPieces { true } else { await places.reserve(1) }
        var added = added
        while true {
          let end = hasPlace ? await turns.run(&added, key, id) : .cancelled
          service.discardAll(of: key)
          service.registry.stop(key)
          if added.isAgain, !end.goesOnLater { await forgetAddition(added) }
          guard let next = board.end(key, end) else { break }
          added = next
          added.isAgain = true
          service.registry.start(key)
          // The upload gives its place back while it waits, since the uploads before it need places.
          if hasPlace, !board.isFirst(key) {
            places.release(1)
            await board.waitForTurn(key, service.wakeUp)
            hasPlace = await places.reserve(1)
          }
        }
        if hasPlace { places.release(1) }
        seats.release(1)
        service.wakeUp.leave()
      }
    }
  }
}
