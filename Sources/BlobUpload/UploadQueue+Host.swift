import BlobHTTP

// What the journal records about the host of the destination.
extension UploadQueue {
  /// Applies what earlier runs have recorded about the host.
  func recall() async throws(UploadError) {
    let destination = uploader.destination
    do {
      if let most = try await journal.hosts.largestBody(at: destination.endpoint.origin) {
        destination.expect(largestBody: most)
      }
      if try await journal.hosts.needsOverride(at: destination.endpoint.origin) {
        destination.acquaintance.methods.recall()
      }
      if let adaptive = uploader.transport as? any AdaptiveTransport,
        let width = try await journal.hosts.width(at: destination.endpoint.origin)
      {
        adaptive.expect(width)
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Records the concurrency that this run has found.
  func remember() async throws(JournalError) {
    guard let width = (uploader.transport as? any AdaptiveTransport)?.learned else { return }
    let origin = uploader.destination.endpoint.origin
    if try await journal.hosts.width(at: origin) != width { try await journal.hosts.keepWidth(width, at: origin) }
  }
}
