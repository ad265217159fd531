import BlobHTTP
import Synchronization

/// Passes the bytes of a body to a receiver that may block, on a worker, one piece after the other. The event thread only
/// copies them. Once enough of them wait, the connection reads no more until the worker has taken them.
final class RelayedReceiver: BodyReceiver {
  private enum Step {
    case bytes([UInt8])
    case end(HTTPHeaders, decided: @Sendable (Plan) -> Void)
    case cut
  }
  private struct State {
    /// Bytes that the worker has not taken yet.
    var waiting: [UInt8] = []
    var end: (trailers: HTTPHeaders, decided: @Sendable (Plan) -> Void)?
    var isCut = false
    /// A worker runs, or is about to.
    var isRunning = false
    /// Released by the worker after the last call, because the end of a receiver may block.
    var receiver: (any BodyReceiver)?
    var failure: ServerError?
    var resume: (@Sendable () -> Void)?

    /// Whether a worker must be started.
    mutating func begin() -> Bool {
      if isRunning || receiver == nil { return false }
      isRunning = true
      return true
    }
  }
  private let state: Mutex<State>
  private let workers: Workers
  private let follow: @Sendable (Plan, @escaping @Sendable (Plan) -> Void) -> Void

  /// How many bytes may wait.
  private let share: MemoryShares.Share

  /// `follow`: passes on the receiver's plan, on a worker.
  init(
    _ receiver: any BodyReceiver, _ workers: Workers, _ share: MemoryShares.Share,
    follow: @escaping @Sendable (Plan, @escaping @Sendable (Plan) -> Void) -> Void
  ) {
    state = Mutex(State(receiver: receiver))
    (self.workers, self.share) = (workers, share)
    self.follow = follow
  }

  var takesPipes: Bool { false }

  /// Throws what the receiver has thrown for earlier bytes.
  func take(_ piece: BodyPiece) throws(ServerError) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("bytes in a pipe cannot be copied") }
    let (failure, starts) = state.withLock { state -> (ServerError?, Bool) in
      if let failure = state.failure { return (failure, false) }
      state.waiting += bytes
      return (nil, state.begin())
    }
    if let failure { throw failure }
    if starts { start() }
  }

  /// Whether more bytes should be read now. If not, `resume` is called once that is so.
  func hasRoom(orCall resume: @escaping @Sendable () -> Void) -> Bool {
    state.withLock { state in
      if state.waiting.count < share.size || state.failure != nil { return true }
      state.resume = resume
      return false
    }
  }

  /// How many bytes should be read now, at least 1.
  var room: Int { state.withLock { max(1, share.size - $0.waiting.count) } }

  func end(_ trailers: HTTPHeaders) -> Plan {
    .later { [self] decided in
      let starts = state.withLock { state in
        state.end = (trailers, decided)
        return state.begin()
      }
      if starts { start() }
    }
  }

  func cut() {
    let starts = state.withLock { state in
      state.isCut = true
      return state.begin()
    }
    if starts { start() }
  }

  private func start() { workers.submit { [self] in run() } }

  private func run() {
    while let (step, receiver, resume) = next() {
      resume?()
      perform(step, receiver)
    }
  }

  /// The next thing to do; nil: nothing is left for now.
  private func next() -> (Step, any BodyReceiver, resume: (@Sendable () -> Void)?)? {
    state.withLock { state in
      guard let receiver = state.receiver else {
        state.isRunning = false
        return nil
      }
      // All bytes that have arrived count, also those before a cut.
      if !state.waiting.isEmpty, state.failure == nil {
        defer { (state.waiting, state.resume) = ([], nil) }
        return (.bytes(state.waiting), receiver, state.resume)
      }
      if state.isCut {
        state.receiver = nil
        return (.cut, receiver, nil)
      }
      if let end = state.end {
        (state.end, state.receiver) = (nil, nil)
        return (.end(end.trailers, decided: end.decided), receiver, nil)
      }
      state.isRunning = false
      return nil
    }
  }

  private func perform(_ step: Step, _ receiver: any BodyReceiver) {
    switch step {
    case .bytes(let bytes):
      var failure: ServerError?
      // `withUnsafeBytes` would lose the type of the error.
      bytes.withUnsafeBytes { bytes in
        do throws(ServerError) { try receiver.take(.bytes(bytes)) } catch { failure = error }
      }
      guard let failure else { return }
      let resume = state.withLock { state in
        (state.failure, state.waiting) = (failure, [])
        defer { state.resume = nil }
        return state.resume
      }
      resume?()
    case .end(let trailers, let decided):
      if let failure = state.withLock({ $0.failure }) {
        receiver.cut()
        decided(.refuse(failure))
      } else {
        follow(receiver.end(trailers), decided)
      }
    case .cut: receiver.cut()
    }
  }
}
