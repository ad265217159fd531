import Synchronization

/// Counts the files of a queue that failed, which shows whether a failure concerns one file or all of them.
struct FailureCounts: ~Copyable, Sendable {
  /// Consecutive files that ran out of attempts.
  private let exhausted = Atomic(0)
  /// Files of a queue that were refused before any file was stored, and the first of these errors.
  private let refusals = Mutex<(count: Int, first: UploadError?)>((0, nil))
  /// Consecutive files, since a file was stored, that were refused with a status other than 403.
  private let refusedInARow = Atomic(0)
  /// The number of these files that were refused for lack of space (507). 0 whenever `refusedInARow` is.
  private let withoutRoomInARow = Atomic(0)

  /// A request has succeeded.
  func noteAccepted() { if exhausted.load(ordering: .relaxed) > 0 { exhausted.store(0, ordering: .relaxed) } }

  func noteStored() {
    if refusedInARow.load(ordering: .relaxed) > 0 {
      withoutRoomInARow.store(0, ordering: .relaxed)
      refusedInARow.store(0, ordering: .relaxed)
    }
  }

  /// Counts a file that ran out of attempts. Returns the number of consecutive ones.
  func addExhausted() -> Int { exhausted.add(1, ordering: .relaxed).newValue }

  /// Counts a file that was refused with this status. Returns the numbers of consecutive ones.
  func addRefused(status: Int?) -> (inARow: Int, withoutRoom: Int) {
    (
      status == 403 ? 0 : refusedInARow.add(1, ordering: .relaxed).newValue,
      status == 507 ? withoutRoomInARow.add(1, ordering: .relaxed).newValue : 0
    )
  }

  /// Counts a file that was refused before any was stored. Returns the number of all of these.
  func addRefusal(_ error: UploadError) -> Int {
    refusals.withLock { refusals in
      refusals.first = refusals.first ?? error
      refusals.count += 1
      return refusals.count
    }
  }

  var firstRefusal: UploadError? { refusals.withLock { $0.first } }
}
