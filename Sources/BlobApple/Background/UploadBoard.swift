import BlobUpload
import Blobs
import Synchronization

/// The running uploads of a `BackgroundUploader`, and the listeners to whom their changes go.
final class UploadBoard: Sendable {
  struct Running {
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
    /// At the place of the upload.
    var turn: PlaceOrder.Turn
    /// The turn of `added`, if other sources are sent to the place before it.
    var next: PlaceOrder.Turn?
  }
  /// A call of `add` whose upload has not begun.
  struct Seat {
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
  struct Listener { weak var buffer: EventBuffer? }
  struct State {
    var running: [String: Running] = [:]
    var listeners: [Listener] = []
    var last = 0
    var seats: [Int: Seat] = [:]
  }
  let state = Mutex(State())
  let order: PlaceOrder

  init(_ order: PlaceOrder = PlaceOrder()) { self.order = order }

  var uploads: [BackgroundUpload] { state.withLock { $0.running.values.map(\.upload) } }

  enum Beginning {
    case began, runsAlready
    /// Its seat was cancelled or replaced.
    case isGivenUp
  }

  /// Starts an upload under its key, unless the key is in use. `seat` nil: an earlier launch has added it.
  ///
  /// `body` gets `added`, or what the last call for the key has added that waits for room: its seat is given up as well. It
  /// also gets whether the upload need not wait for others to the same place.
  func start(
    _ key: String, _ added: AddedSource, seat number: Int? = nil, _ body: (AddedSource, Bool) -> Task<Void, Never>
  ) -> Beginning {
    let (beginning, reservations) = state.withLock { state -> (Beginning, [Task<Bool, Never>]) in
      if let number, state.seats[number]?.isGivenUp ?? true { return (.isGivenUp, []) }
      if state.running[key] != nil { return (.runsAlready, []) }
      let last = state.lastReady(key)
      let added = last.flatMap { state.seats[$0]?.added } ?? added
      let upload = BackgroundUpload(added.name, identity: added.identity)
      let seat = max(number ?? 0, last ?? 0)
      if let number { state.seats[number] = nil }
      let turn = order.begin(key)
      state.running[key] = Running(upload: upload, seat: seat, turn: turn)
      state.running[key]?.task = body(added, order.isFirst(turn))
      state.tell(key, upload)
      return (.began, state.replaceSeats(key, upTo: seat))
    }
    for reservation in reservations { reservation.cancel() }
    return beginning
  }

  /// Waits until no upload has an earlier turn at the place of this one.
  func waitForTurn(_ key: String, _ wakeUp: WakeUp) async {
    if let turn = state.withLock({ $0.running[key]?.turn }) { await order.wait(for: turn, wakeUp) }
  }

  /// Whether no upload has an earlier turn at the place of this one.
  func isFirst(_ key: String) -> Bool { state.withLock { $0.running[key]?.turn }.map { order.isFirst($0) } ?? true }

  /// Whether another source is about to be sent to the place of this one: it is uploaded, or its call of `add` waits.
  func hasOthers(than key: String) -> Bool {
    order.hasOthers(than: key)
      || state.withLock { state in
        state.seats.values.contains { $0.key != key && !$0.isGivenUp && TaskLabel.haveOnePlace($0.key, key) }
      }
  }

  /// The upload that a call of `add` finds under its key.
  enum Present {
    case nothing
    /// An upload of the same version, or of one that cannot be told apart.
    case same
    /// An upload of another version, or one for whose end other sources wait. The added one is uploaded after it, and after
    /// those.
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
      if let behind = order.begin(behindOthersThan: running.next ?? running.turn) {
        if let next = running.next { order.end(next) }
        state.running[key]?.next = behind
      }
      let isSame = label == running.version && state.running[key]?.next == nil
      state.running[key]?.added = isSame ? nil : source
      return (isSame ? .same : .another, running.pause, reservations)
    }
    pause?.cancel()
    for reservation in reservations { reservation.cancel() }
    return present
  }

  /// The upload is about to send this version. Returns a source that must be uploaded instead, because it was added
  /// meanwhile in another version; nil: there is none that is sent before those of other sources, and the version is sent.
  func sends(_ version: String, _ key: String) -> AddedSource? {
    state.withLock { state in
      if state.running[key]?.next == nil, let added = state.running[key]?.added.take() { return added }
      state.running[key]?.version = version
      return nil
    }
  }

  /// Bytes of the upload that the server has confirmed.
  func acknowledged(_ key: String) -> Int64 { state.withLock { $0.running[key]?.progress?.acknowledged ?? 0 } }

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
  /// must be uploaded first, because it was added meanwhile in another version; then nothing has ended but, perhaps, the turn
  /// of the upload. nil: there is none.
  @discardableResult
  func end(_ key: String, _ end: BackgroundUpload.State) -> AddedSource? {
    state.withLock { state in
      let added = state.running[key]?.added.take()
      if case .cancelled = end {
      } else if let added {
        state.change(key) { $0.state = .uploading }
        state.running[key]?.version = nil
        if let ended = state.running[key]?.turn, let next = state.running[key]?.next.take() {
          state.running[key]?.turn = next
          order.end(ended)
        }
        return added
      }
      for turn in [state.running[key]?.turn, state.running[key]?.next] { if let turn { order.end(turn) } }
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
  func lastReady(_ key: String) -> Int? {
    seats.filter { $0.value.key == key && $0.value.added != nil && !$0.value.isGivenUp }.keys.max()
  }

  /// Nothing is uploaded any more for the calls with these seats. Returns what they wait for.
  mutating func replaceSeats(_ key: String, upTo last: Int) -> [Task<Bool, Never>] {
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
