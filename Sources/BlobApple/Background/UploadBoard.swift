import BlobUpload
import Blobs
import Synchronization

/// The running uploads of a `BackgroundUploader`, and the listeners to whom their changes go.
final class UploadBoard: Sendable {
  fileprivate struct Running {
    var upload: BackgroundUpload
    var progress: UploadProgress?
    var task: Task<Void, Never>?
    /// It is about to end. What is added from then on is another upload.
    var isCancelled = false
    /// The version of the source that is being uploaded; nil: it was not looked at yet.
    var version: String?
    /// The last call of `add` since the upload has begun, if it was one of another version.
    var added: AddedSource?
    /// Sleeps while the upload waits for other credentials; nil: it does not.
    var pause: Task<Void, Never>?
  }
  /// A call of `add` whose upload has not begun.
  fileprivate struct Seat {
    var name: BytePath
    var key: String
    var reservation: Task<Bool, Never>?
    var isCancelled = false
    /// A later call of `add` has another version of the source.
    var isReplaced = false
  }
  /// A loop over the changes. It owns its buffer.
  fileprivate struct Listener { weak var buffer: EventBuffer? }
  fileprivate struct State {
    var running: [String: Running] = [:]
    var listeners: [Listener] = []
    var last = 0
    var seats: [Int: Seat] = [:]
  }
  private let state = Mutex(State())

  var uploads: [BackgroundUpload] { state.withLock { $0.running.values.map(\.upload) } }

  enum Beginning {
    case began, runsAlready
    /// Its seat was cancelled or replaced.
    case isGivenUp
  }

  /// Starts an upload under its key, unless the key is in use. It gives up its seat, if it has one.
  func start(
    _ key: String, _ upload: BackgroundUpload, seat number: Int? = nil, _ body: () -> Task<Void, Never>
  ) -> Beginning {
    state.withLock { state in
      if let number {
        guard let seat = state.seats[number], !seat.isCancelled, !seat.isReplaced else { return .isGivenUp }
      }
      if state.running[key] != nil { return .runsAlready }
      if let number { state.seats[number] = nil }
      state.running[key] = Running(upload: upload)
      state.running[key]?.task = body()
      state.tell(key, upload)
      return .began
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

  /// Adds a source to the upload that has the key already, and ends its pause.
  func add(_ source: AddedSource, to key: String) -> Present {
    let (present, pause) = state.withLock { state -> (Present, Task<Void, Never>?) in
      guard let running = state.running[key] else { return (.nothing, nil) }
      if running.isCancelled, let task = running.task { return (.ending(task), nil) }
      guard let label = source.label else { return (.same, running.pause) }
      let isSame = label == running.version
      state.running[key]?.added = isSame ? nil : source
      return (isSame ? .same : .another, running.pause)
    }
    pause?.cancel()
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

  /// Cancels the uploads with this name, also those that have not begun; nil: all. Those that are added later are not
  /// affected. Returns the tasks that are about to end.
  func cancel(_ name: BytePath?) -> [Task<Void, Never>] {
    let (tasks, reservations) = state.withLock { state in
      let keys = state.running.filter { name == nil || $0.value.upload.name == name }.map(\.key)
      for key in keys { state.running[key]?.isCancelled = true }
      let numbers = state.seats.filter { name == nil || $0.value.name == name }.map(\.key)
      for number in numbers { state.seats[number]?.isCancelled = true }
      return (keys.compactMap { state.running[$0]?.task }, numbers.compactMap { state.seats[$0]?.reservation })
    }
    for task in tasks { task.cancel() }
    for reservation in reservations { reservation.cancel() }
    return tasks
  }

  /// Whether an upload has this key and was not cancelled, running or waiting for a seat.
  func isActive(_ key: String) -> Bool {
    state.withLock { state in
      state.running[key].map { !$0.isCancelled } ?? false
        || state.seats.values.contains { $0.key == key && !$0.isCancelled }
    }
  }

  // MARK: Pauses

  /// The upload waits until `pause` ends; nil: it goes on.
  func setPause(_ pause: Task<Void, Never>?, _ key: String) { state.withLock { $0.running[key]?.pause = pause } }

  /// Ends all pauses.
  func endPauses() {
    let pauses = state.withLock { $0.running.values.compactMap(\.pause) }
    for pause in pauses { pause.cancel() }
  }

  // MARK: Uploads that have not begun

  /// An upload is about to wait for the end of another one. Returns its number, for the following calls. Uploads of its key
  /// that wait already are replaced: which of them would get a seat first is open.
  func waitForSeat(_ name: BytePath, _ key: String) -> Int {
    state.withLock { state in
      for (number, seat) in state.seats where seat.key == key { state.seats[number]?.isReplaced = true }
      state.last += 1
      state.seats[state.last] = Seat(name: name, key: key)
      return state.last
    }
  }

  /// `reservation` ends with true once there is a seat, or with false when it is cancelled.
  func setReservation(_ reservation: Task<Bool, Never>, of number: Int) {
    let isCancelled = state.withLock { state in
      state.seats[number]?.reservation = reservation
      return state.seats[number]?.isCancelled ?? false
    }
    if isCancelled { reservation.cancel() }
  }

  func isCancelled(_ number: Int) -> Bool {
    state.withLock { $0.seats[number]?.isCancelled ?? false }
  }

  func stopWaiting(_ number: Int) { state.withLock { $0.seats[number] = nil } }

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
        if case .finished = end, let length = upload.length { upload.sent = length }
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
