import BlobUpload
import Blobs
import Synchronization

/// The running uploads of a `BackgroundUploader`, and the listeners to whom their changes go.
final class UploadBoard: Sendable {
  fileprivate struct Running {
    var upload: BackgroundUpload
    var progress: UploadProgress?
    var task: Task<Void, Never>?
    /// The upload is about to end. A source that is added from then on is another upload.
    var isCancelled = false
    /// The version of the source that is being uploaded; nil: it was not looked at yet.
    var version: String?
    /// The last call of `add` since the upload has begun, if it was one of another version.
    var added: AddedSource?
    /// Sleeps while the upload waits for other credentials; nil: it does not.
    var pause: Task<Void, Never>?
    /// The last seat that has begun the upload or joined it; 0: an earlier launch has added it.
    var seat = 0
    /// Counts the uploads in the order in which they have begun.
    var number = 0
  }
  /// A call of `add` whose upload has not begun.
  fileprivate struct Seat {
    var name: BytePath
    var key: String
    /// The call has looked at its source, and is about to write it into the journal.
    var hasLooked = false
    /// The source that is uploaded once there is room; nil: it is not in the journal yet.
    var added: AddedSource?
    /// Waits for room.
    var reservation: Task<Bool, Never>?
    var isCancelled = false
    /// A later call of `add` has begun the upload or joined it.
    var isReplaced = false
    /// Nothing is uploaded for this call any more.
    var isGivenUp: Bool { isCancelled || isReplaced }
  }
  /// A loop over the changes. It owns its buffer.
  fileprivate struct Listener { weak var buffer: EventBuffer? }
  fileprivate struct State {
    var running: [String: Running] = [:]
    var listeners: [Listener] = []
    var last = 0
    var seats: [Int: Seat] = [:]
    /// The number of the upload that has begun last.
    var begun = 0
  }
  private let state = Mutex(State())

  var uploads: [BackgroundUpload] { state.withLock { $0.running.values.map(\.upload) } }

  enum Beginning {
    case began, runsAlready
    /// Its seat was cancelled or replaced.
    case isGivenUp
  }

  /// Starts an upload under its key, unless the key is in use. `seat` nil: an earlier launch has added it.
  ///
  /// `body` gets `added`, or what the last call for the key has added that waits for room: its seat is given up as well.
  func start(
    _ key: String, _ added: AddedSource, seat number: Int? = nil, _ body: (AddedSource) -> Task<Void, Never>
  ) -> Beginning {
    let (beginning, reservations) = state.withLock { state -> (Beginning, [Task<Bool, Never>]) in
      if let number, state.seats[number]?.isGivenUp ?? true { return (.isGivenUp, []) }
      if state.running[key] != nil { return (.runsAlready, []) }
      let last = state.lastReady(key)
      let added = last.flatMap { state.seats[$0]?.added } ?? added
      let upload = BackgroundUpload(added.name, identity: added.identity)
      let seat = max(number ?? 0, last ?? 0)
      if let number { state.seats[number] = nil }
      state.begun += 1
      state.running[key] = Running(upload: upload, seat: seat, number: state.begun)
      state.running[key]?.task = body(added)
      state.tell(key, upload)
      return (.began, state.replaceSeats(key, upTo: seat))
    }
    for reservation in reservations { reservation.cancel() }
    return beginning
  }

  /// The tasks of the uploads that have begun before this one, to the same place.
  func earlier(than key: String) -> [Task<Void, Never>] {
    state.withLock { state in
      guard let number = state.running[key]?.number else { return [] }
      return state.running.filter { $0.value.number < number && TaskLabel.haveOnePlace($0.key, key) }
        .compactMap(\.value.task)
    }
  }

  /// The upload that a call of `add` finds under its key.
  enum Present {
    case nothing
    /// An upload of the same version, or of one that cannot be told apart.
    case same
    /// An upload of another version. The added one is uploaded after its end.
    case another
    /// An upload that was cancelled, and its task.
    case ending(Task<Void, Never>)
  }

  /// Adds a source to the upload that has the key already, and ends its pause. `seat` nil: an earlier launch has added it.
  func add(_ source: AddedSource, to key: String, seat number: Int?) -> Present {
    let (present, pause, reservations) = state.withLock {
      state -> (Present, Task<Void, Never>?, [Task<Bool, Never>]) in
      guard let running = state.running[key] else { return (.nothing, nil, []) }
      if running.isCancelled, let task = running.task { return (.ending(task), nil, []) }
      if let number, state.seats[number]?.isGivenUp ?? true { return (.same, nil, []) }
      let seat = max(running.seat, number ?? 0)
      state.running[key]?.seat = seat
      let reservations = state.replaceSeats(key, upTo: seat)
      guard let label = source.label else { return (.same, running.pause, reservations) }
      let isSame = label == running.version
      state.running[key]?.added = isSame ? nil : source
      return (isSame ? .same : .another, running.pause, reservations)
    }
    pause?.cancel()
    for reservation in reservations { reservation.cancel() }
    return present
  }

  /// The upload is about to send this version. Returns a source that must be uploaded instead, because it was added
  /// meanwhile in another version; nil: there is none, and the version is sent.
  func sends(_ version: String, _ key: String) -> AddedSource? {
    state.withLock { state in
      if let added = state.running[key]?.added.take() { return added }
      state.running[key]?.version = version
      return nil
    }
  }

  /// Bytes of the upload that the server has confirmed.
  func acknowledged(_ key: String) -> Int64 { state.withLock { $0.running[key]?.progress?.acknowledged ?? 0 } }

  // MARK: Cancelling

  /// The last seat that was taken.
  var lastSeat: Int { state.withLock { $0.last } }

  /// Cancels the uploads with this name, also those that have not begun; nil: all. Those of seats after `last` are not
  /// affected. Returns the tasks that are about to end.
  func cancel(_ name: BytePath?, upTo last: Int) -> [Task<Void, Never>] {
    let (tasks, reservations) = state.withLock { state in
      let keys = state.running.filter { (name == nil || $0.value.upload.name == name) && $0.value.seat <= last }.map(
        \.key)
      for key in keys { state.running[key]?.isCancelled = true }
      let numbers = state.seats.filter { (name == nil || $0.value.name == name) && $0.key <= last }.map(\.key)
      for number in numbers { state.seats[number]?.isCancelled = true }
      return (keys.compactMap { state.running[$0]?.task }, numbers.compactMap { state.seats[$0]?.reservation })
    }
    for task in tasks { task.cancel() }
    for reservation in reservations { reservation.cancel() }
    return tasks
  }

  /// Whether an upload has this key and was not cancelled, running or waiting for room. A call that looks at its source does
  /// not count, since it may find none.
  func isActive(_ key: String) -> Bool {
    state.withLock { state in
      state.running[key].map { !$0.isCancelled } ?? false
        || state.seats.values.contains { $0.key == key && $0.hasLooked && !$0.isCancelled }
    }
  }

  /// Whether an upload with this key runs.
  func isRunning(_ key: String) -> Bool { state.withLock { $0.running[key] != nil } }

  // MARK: Pauses

  /// The upload waits until `pause` ends; nil: it goes on.
  func setPause(_ pause: Task<Void, Never>?, _ key: String) { state.withLock { $0.running[key]?.pause = pause } }

  /// Ends all pauses.
  func endPauses() {
    let pauses = state.withLock { $0.running.values.compactMap(\.pause) }
    for pause in pauses { pause.cancel() }
  }

  // MARK: Uploads that have not begun

  /// A call of `add` begins. Returns its number, for the following calls. Of the calls for one key, the last one counts.
  func takeSeat(_ name: BytePath, _ key: String) -> Int {
    state.withLock { state in
      state.last += 1
      state.seats[state.last] = Seat(name: name, key: key)
      return state.last
    }
  }

  /// The call has looked at its source. Returns false if nothing is uploaded for it any more.
  func hasLooked(_ number: Int) -> Bool {
    state.withLock { state in
      state.seats[number]?.hasLooked = true
      return state.seats[number].map { !$0.isGivenUp } ?? false
    }
  }

  /// The source is in the journal. `reservation` ends with true once there is room, or with false when it is cancelled.
  func setReservation(_ reservation: Task<Bool, Never>, for added: AddedSource, of number: Int) {
    let isGivenUp = state.withLock { state in
      state.seats[number]?.reservation = reservation
      state.seats[number]?.added = added
      return state.seats[number]?.isGivenUp ?? false
    }
    if isGivenUp { reservation.cancel() }
  }

  func isCancelled(_ number: Int) -> Bool {
    state.withLock { $0.seats[number]?.isCancelled ?? false }
  }

  /// The call of `add` ends. If its upload has not begun, and that of an earlier call for the key is still to begin, that call
  /// uploads the version that the journal has: that of the last call.
  func leaveSeat(_ number: Int) {
    state.withLock { state in
      guard let seat = state.seats.removeValue(forKey: number), !seat.isGivenUp, let added = seat.added,
        let earlier = state.lastReady(seat.key), earlier < number
      else { return }
      state.seats[earlier]?.added = added
    }
  }

  // MARK: Changes

  func follow(_ key: String, _ progress: UploadProgress) { state.withLock { $0.running[key]?.progress = progress } }

  /// Changes an upload, and tells the listeners.
  func change(_ key: String, _ body: (inout BackgroundUpload) -> Void) {
    state.withLock { $0.change(key, body) }
  }

  /// The same for the last change. The upload no longer runs, so whoever is told may add it again. Returns a source that
  /// must be uploaded first, because it was added meanwhile in another version; then nothing has ended. nil: there is none.
  @discardableResult
  func end(_ key: String, _ end: BackgroundUpload.State) -> AddedSource? {
    state.withLock { state in
      let added = state.running[key]?.added.take()
      if case .cancelled = end {
      } else if let added {
        state.change(key) { $0.state = .uploading }
        return added
      }
      state.change(key, isLast: true) { upload in
        upload.state = end
        guard case .finished(let result) = end else { return }
        upload.length = result?.length ?? upload.length
        if let length = upload.length { upload.sent = length }
      }
      return nil
    }
  }

  func listen() -> AsyncStream<BackgroundUpload> {
    let buffer = EventBuffer()
    state.withLock { state in
      for (key, running) in state.running { buffer.put(running.upload, of: key, isLast: false) }
      state.listeners.removeAll { $0.buffer == nil }
      state.listeners.append(Listener(buffer: buffer))
    }
    return AsyncStream {
      await buffer.next()
    } onCancel: {
      buffer.end()
    }
  }
}

extension UploadBoard.State {
  /// The last seat for a key that waits for room.
  fileprivate func lastReady(_ key: String) -> Int? {
    seats.filter { $0.value.key == key && $0.value.added != nil && !$0.value.isGivenUp }.keys.max()
  }

  /// Nothing is uploaded any more for the calls with these seats. Returns what they wait for.
  fileprivate mutating func replaceSeats(_ key: String, upTo last: Int) -> [Task<Bool, Never>] {
    let numbers = seats.filter { $0.value.key == key && $0.key <= last }.map(\.key)
    for number in numbers { seats[number]?.isReplaced = true }
    return numbers.compactMap { seats[$0]?.reservation }
  }

  mutating func change(_ key: String, isLast: Bool = false, _ body: (inout BackgroundUpload) -> Void) {
    guard var changed = running[key] else { return }
    body(&changed.upload)
    if let progress = changed.progress { changed.upload.acknowledged = progress.acknowledged }
    running[key] = isLast ? nil : changed
    tell(key, changed.upload, isLast: isLast)
  }

  fileprivate func tell(_ key: String, _ upload: BackgroundUpload, isLast: Bool = false) {
    for listener in listeners { listener.buffer?.put(upload, of: key, isLast: isLast) }
  }
}
