import BlobHTTP
import BlobUpload

/// A server of the journal, spoken to about unfinished uploads.
struct KnownServer: Sendable {
  private let dialect: any UploadProtocol
  private let context: UploadContext

  /// Sends at most one request. `connection` is what was given now; the rest is as when the push began.
  init(_ kept: JournalDestination, _ connection: ConnectionOptions) async throws(UploadError) {
    guard let endpoint = HTTPURL(kept.endpoint) else {
      throw UploadError(.giveUp, .journal, "the journal has no usable URL: '\(kept.endpoint)'")
    }
    let connection = connection.completed(from: kept)
    let transport = CurlTransport(try connection.transportOptions(lanes: 1))
    let headers = try connection.fields(for: endpoint)
    let destination = try await UploadDestination.discover(
      endpoint, named: kept.protocolName, headers: headers, over: transport)
    dialect = destination.dialect
    context = UploadContext(transport: transport, headers: headers, origin: endpoint.origin)
  }

  func abort(_ session: UploadSession) async throws(UploadError) { try await dialect.abort(session, context) }

  func held(by session: UploadSession) async throws(UploadError) -> Held {
    try await dialect.held(by: session, context)
  }
}
