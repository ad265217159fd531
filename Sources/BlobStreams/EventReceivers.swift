import Foundation

/// The objects that receive the events of a stream.
struct EventReceivers {
  weak var stream: BlobInputStream?
  weak var delegate: (any StreamDelegate)?
  private var client: HeldClient?
  /// If false, the client is not called and the stream never has the status of an error.
  var reportsErrors: Bool

  init(reportsErrors: Bool) { self.reportsErrors = reportsErrors }

  var clientToCall: HeldClient? { reportsErrors ? client : nil }

  /// Returns the previous client, which must be released without the lock.
  mutating func replaceClient(_ client: HeldClient?) -> HeldClient? {
    defer { self.client = client }
    return self.client
  }
}
