import BlobHTTP

/// The facts that the journal records about the host of the destination.
struct HostRecord {
  let destination: QueueDestination
  private var hosts: JournalHosts { destination.journal.hosts }
  private var origin: String { destination.uploader.destination.endpoint.origin }

  /// Applies what earlier runs have recorded about the host.
  func recall() async throws(UploadError) {
    do {
      if let most = try await hosts.largestBody(at: origin) {
        destination.uploader.destination.expect(largestBody: most)
      }
      if try await hosts.needsOverride(at: origin) { destination.state.methods.recall() }
      if let adaptive = destination.uploader.transport as? any AdaptiveTransport,
        let width = try await hosts.width(at: origin)
      {
        adaptive.expect(width)
      }
    } catch {
      throw UploadError(journal: error)
    }
  }

  /// Records the concurrency that this run has found.
  func remember() async throws(JournalError) {
    guard let width = (destination.uploader.transport as? any AdaptiveTransport)?.learned else { return }
    if try await hosts.width(at: origin) != width { try await hosts.keepWidth(width, at: origin) }
  }
}
