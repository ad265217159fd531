import Blobs
import Synchronization

/// An event of a claimed entry.
struct JournalNote: Sendable {
  enum Event: Sendable {
    case opened(UploadSession)
    /// The bytes are sealed under this key, which is encrypted.
    case sealing(String)
    case acknowledged(Int64)
    case receipt(PartReceipt)
    /// `length`: the total length, if it was unknown before. `keepsChecksums`: keeps the checksums of the sent bytes,
    /// so that a later run can compare. `replaces`: the bytes were stored, replacing anything with the same name.
    /// `sealed`: what is known of the ciphertext; nil: the file was not sealed.
    case done(location: String?, length: Int64?, keepsChecksums: Bool, replaces: Bool, sealed: SealedContent?)
    case failed(String)
    case refused(String)
    case restarted
    case abandoned
    case recognized(Validator)
    case kept
    case doubted
    case released

    /// Says how far an upload is that is not done.
    var isState: Bool {
      switch self {
      case .opened, .acknowledged: true
      default: false
      }
    }
  }
  var id: Int64
  var event: Event

  /// Whether the note also applies to an entry that nobody has claimed.
  func needsNoClaim(isDone: Bool) -> Bool {
    switch event {
    case .restarted, .abandoned: true
    case .recognized, .kept, .doubted: isDone
    default: false
    }
  }
}

/// Notes that wait for the writer, in their order of arrival.
final class JournalNotes: Sendable {
  /// How long a note may wait. A shorter delay compares as less.
  enum Delay: Int, Comparable {
    case none, batch, progress

    var duration: Duration {
      switch self {
      case .none: .zero
      case .batch: .milliseconds(250)
      case .progress: .seconds(1)
      }
    }
    static func < (a: Delay, b: Delay) -> Bool { a.rawValue < b.rawValue }
  }

  /// With this many waiting notes, they are written without further delay.
  static let batch = 256

  private struct State {
    var notes: [JournalNote] = []
    /// Indices of entries' last notes, if these are offsets: the next offset replaces the note.
    var offsets: [Int64: Int] = [:]
    /// When the writer will run; nil: it is not scheduled.
    var due: Delay?
    var round = 0
  }
  private let state = Mutex(State())

  /// Adds a note. If the writer must run sooner than scheduled, returns the delay and the round to write.
  func add(_ note: JournalNote) -> (delay: Delay, round: Int)? {
    state.withLock { state in
      var delay: Delay
      switch note.event {
      case .opened, .sealing, .receipt, .restarted, .abandoned, .doubted: delay = .none
      case .done, .failed, .refused, .recognized, .kept, .released: delay = .batch
      case .acknowledged: delay = .progress
      }
      if case .acknowledged = note.event {
        if let place = state.offsets[note.id] {
          state.notes[place] = note
        } else {
          state.offsets[note.id] = state.notes.count
          state.notes.append(note)
        }
      } else {
        if !state.offsets.isEmpty { state.offsets[note.id] = nil }
        state.notes.append(note)
      }
      if state.notes.count >= Self.batch { delay = .none }
      if let due = state.due, due <= delay { return nil }
      state.due = delay
      return (delay, state.round)
    }
  }

  /// Removes and returns all waiting notes; the next note schedules the writer again. With a `round`: empty if that
  /// round is already over.
  func take(round: Int? = nil) -> [JournalNote] {
    state.withLock { state in
      if let round, round != state.round { return [] }
      defer {
        state.notes.removeAll(keepingCapacity: state.notes.count <= 2 * Self.batch)
        state.offsets.removeAll()
        state.due = nil
        state.round += 1
      }
      return state.notes
    }
  }
}
