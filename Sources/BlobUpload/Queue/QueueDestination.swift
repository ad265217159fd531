import BlobHTTP

/// The destination of a queue, as it is sent to and as the journal knows it.
final class QueueDestination: Sendable {
  let engine: UploadEngine
  let journal: Journal
  /// The ID of the destination in the journal.
  let id: Int64

  init(_ uploader: Uploader, _ journal: Journal, _ id: Int64) {
    engine = UploadEngine(uploader)
    self.journal = journal
    self.id = id
  }

  var uploader: Uploader { _read { yield engine.uploader } }
  var traits: UploadTraits { _read { yield engine.uploader.destination.traits } }
  var state: HostState { engine.uploader.destination.acquaintance }
  var leftovers: Leftovers { Leftovers(self) }

  func flush() async throws(UploadError) {
    do { try await journal.flush() } catch { throw UploadError(journal: error) }
  }
}
