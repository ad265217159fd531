import BlobHTTP
import Blobs

/// The objects that all uploads of a `BackgroundUploader` share.
struct BackgroundService: Sendable {
  /// The identifier of the uploader's session.
  let session: String
  let tasks: any BackgroundTasks
  let registry: TaskRegistry
  /// The tasks that uploaders of this process have cancelled.
  let cancelled: CancelledTasks
  let spool: PieceSpool
  let wakeUp: WakeUp
  /// Sends requests without a body while the app runs, which is faster than a background task.
  let direct: any Transport
  /// How long the end of a cancelled task is waited for before another version is sent.
  var cancelling = Duration.seconds(10)
  /// Copies and compares bodies. A source may block a thread for long.
  let threads = BlockingPool("background", threads: 4, patience: .seconds(10))

  /// Cancels a task of which the outcome is of no use, and then deletes its piece: a task that begins without its file
  /// would be sent with an empty body.
  func discard(_ label: TaskLabel) {
    registry.giveUp(label)
    // An upload may wait for the room of the piece, and must get it before the app is suspended.
    wakeUp.enter()
    tasks.cancel(label.text) { [spool, wakeUp] in
      spool.remove(label)
      wakeUp.leave()
    }
  }

  /// Deletes the piece of a task that has ended.
  func forget(_ label: TaskLabel) {
    registry.giveUp(label)
    spool.remove(label)
  }

  /// Deletes what is left of other sources that were sent to the place of an upload, and that nothing goes on with before it.
  func discardOthers(than upload: String) {
    for label in registry.pending() where label.upload != upload && TaskLabel.haveOnePlace(label.upload, upload) {
      discard(label)
    }
  }

  /// Deletes what is left of an upload: its tasks, whatever they send, and their pieces.
  func discardAll(of upload: String) { for label in registry.pending(upload) { discard(label) } }
}
