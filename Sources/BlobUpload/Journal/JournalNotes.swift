import Blobs
import Synchronization

/// Something that became known about a claimed entry.
struct JournalNote: Sendable {
  enum Event: Sendable {
    case opened(UploadSession)
    case acknowledged(Int64)
    case receipt(PartReceipt)
    /// `length`: of the whole, where it was not known before. `keepsChecksums`: what was summed of the source stays, so that
    /// a later run can compare.
    /// `replaces`: its bytes were stored, whatever had its name before.
    case done(location: String?, length: Int64?, keepsChecksums: Bool, replaces: Bool)
    case failed(String)
    case refused(String)
    case restarted
    case abandoned
    case recognized(Validator)
    case kept
    case released
  }
  var id: Int64
  var event: Event

  /// Whether it is true of an entry that nobody has claimed.
  func needsNoClaim(isDone: Bool) -> Bool {
    switch event {
    case .restarted, .abandoned: true
    case .recognized, .kept: isDone
    default: false
    }
  }
}

/// The notes that wait for the writer, in the order they came.
final class JournalNotes: Sendable {
  /// How long a note may wait. Shorter compares as less.
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

  /// So many waiting ones are written without further delay.
  static let batch = 256

  private struct State {
    var notes: [JournalNote] = []
    /// Where an entry's last note is an offset: the next offset takes its place.
    var offsets: [Int64: Int] = [:]
    /// When the writer will come; nil: nobody has called it.
    var due: Delay?
    var round = 0
  }
  private let state = Mutex(State())

  /// Adds a note. If the writer has to come sooner than it would, returns when, and for which round.
  func add(_ note: JournalNote) -> (delay: Delay, round: Int)? {
    state.withLock { state in
      var delay: Delay
      switch note.event {
      case .opened, .receipt, .restarted, .abandoned: delay = .none
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

  /// Everything that waits, for the writer, who then is called anew. With a `round`: nothing if it is over already.
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
