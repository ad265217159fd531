import BlobUpload
import Blobs
import Synchronization

/// The running uploads of a `BackgroundUploader`, and the listeners to whom their changes go.
final class UploadBoard: Sendable {
  fileprivate struct Running {
    var upload: BackgroundUpload
    var progress: UploadProgress?
    var task: Task<Void, Never>?
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

  /// Starts an upload under its key. Does nothing, and returns false, if the key is in use.
  func start(_ key: String, _ upload: BackgroundUpload, _ body: () -> Task<Void, Never>) -> Bool {
    state.withLock { state in
      if state.running[key] != nil { return false }
      state.running[key] = Running(upload: upload)
      state.running[key]?.task = body()
      state.tell(key, upload)
      return true
    }
  }

  /// The upload that a call of `add` finds under its key.
  enum Present {
    case nothing
    /// An upload of the same version, or of one that cannot be told apart.
    case same
    /// An upload of another version. The added one is uploaded after its end.
    case another
  }

  /// Adds a source to the upload that has the key already, and ends its pause.
  func add(_ source: AddedSource, to key: String) -> Present {
    let (present, pause) = state.withLock { state -> (Present, Task<Void, Never>?) in
      guard let running = state.running[key] else { return (.nothing, nil) }
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

  /// The tasks of the uploads with this name; nil: of all.
  func tasks(named name: BytePath?) -> [Task<Void, Never>] {
    state.withLock { $0.running.values.filter { name == nil || $0.upload.name == name }.compactMap(\.task) }
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

  /// Cancels the uploads with this name that have not begun; nil: all of them.
  func cancelWaiting(_ name: BytePath?) {
    let reservations = state.withLock { state in
      let numbers = state.seats.filter { name == nil || $0.value.name == name }.map(\.key)
      for number in numbers { state.seats[number]?.isCancelled = true }
      return numbers.compactMap { state.seats[$0]?.reservation }
    }
    for reservation in reservations { reservation.cancel() }
  }

  func isCancelled(_ number: Int) -> Bool {
    state.withLock { $0.seats[number]?.isCancelled ?? false }
  }

  /// Whether an upload that has a seat begins: it was neither cancelled nor replaced.
  func begins(_ number: Int) -> Bool {
    state.withLock { $0.seats[number].map { !$0.isCancelled && !$0.isReplaced } ?? false }
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
