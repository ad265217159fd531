import BlobHTTP
import Blobs

/// The system's service that sends requests while the app is suspended or after it was terminated: on Apple's systems a
/// background `URLSession`. It decides nothing. All methods may be called on any thread and do not block.
package protocol BackgroundTasks: Sendable {
  /// Sends the events of all tasks to `receiver` from now on, including those of tasks that ended while no process was
  /// there to receive them. Returns the labels of the tasks that have not ended.
  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String]
  func start(_ task: BackgroundTask)
  /// Starts a task that goes on where a failed one ended. `data` comes from that failure and can be used once. The file
  /// with the body must still be there.
  func resume(_ data: [UInt8], _ task: BackgroundTask)
  /// Calls `done` once the task is cancelled, so that it no longer needs the file with its body. A task that has ended, or
  /// does not exist, needs none either.
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void)
}

/// A request that the system is to send.
package struct BackgroundTask: Sendable {
  /// Identifies the task for every process of the app.
  package var label: String
  package var request: HTTPRequest
  /// The file with the request's body; nil: it has none.
  package var body: BytePath?
  /// Bytes of the body.
  package var length: Int64
  /// The system sends the request after this delay, or later.
  package var delay: Duration
}

/// How a task ended.
package enum BackgroundTaskEnd: Sendable {
  /// `unsent`: bytes of the body that the system had not sent by its own count when the response arrived.
  case response(HTTPResponse, unsent: Int64 = 0)
  /// No response arrived. `resumeData` is for `BackgroundTasks.resume`; nil: the system cannot resume the task.
  case failed(TransportError, resumeData: [UInt8]?)
}

/// Receives the events of tasks, on any thread.
package protocol BackgroundTaskReceiver: AnyObject, Sendable {
  /// `total`: bytes of the body that were sent so far.
  func sent(_ label: String, total: Int64)
  /// Called once for each task.
  func ended(_ label: String, _ end: BackgroundTaskEnd)
  /// Every event for which the system has woken or launched the app was delivered.
  func deliveredAll()
}
