import BlobClient
import BlobHTTP
import BlobUpload

/// A server from the journal, which is asked about unfinished uploads.
struct KnownServer: Sendable {
  private let uploadProtocol: any UploadProtocol
  private let context: UploadContext

  /// Sends at most one request. `connection` contains the options given now; all others are those of the push. Throws
  /// if the credentials belong to another user than those of the push.
  init(_ kept: JournalDestination, _ connection: ConnectionOptions) async throws(UploadError) {
    let connection = try connection.completed(from: kept)
    let transport = SocketTransport(try connection.transportOptions(connections: 1))
    let destination: UploadDestination
    do throws(UploadError) {
      destination = try await Reached(kept, connection, over: transport).destination
    } catch {
      var error = error
      if kept.hidesQuery == true { error.message += ". (The query of its URL is not kept, since it may be a secret.)" }
      throw error
    }
    try destination.checkUser(of: kept)
    uploadProtocol = destination.uploadProtocol
    context = UploadContext(destination, over: transport)
  }

  func abort(_ session: UploadSession) async throws(UploadError) { try await uploadProtocol.abort(session, context) }

  /// The session in the result has an expiry only if the server has reported it now.
  func held(by session: UploadSession) async throws(UploadError) -> Held {
    var session = session
    session.expires = nil
    return try await uploadProtocol.held(by: session, context)
  }

  func hasWhole(_ session: UploadSession) async -> Bool { await uploadProtocol.hasWhole(session, context) }

  /// Whether the server still has the upload, according to its current response.
  func keeps(_ session: UploadSession, now: Int64) async throws(UploadError) -> Bool {
    do throws(UploadError) {
      switch try await held(by: session) {
      case .upTo(_, let session): return session.expires.map { $0 > now } ?? true
      case .parts(let parts, let session): return !parts.isEmpty && session.expires.map { $0 > now } ?? true
      // All bytes have arrived: the next push records that in the journal.
      case .finished: return true
      }
    } catch {
      if error.recovery == .restart { return false }
      throw error
    }
  }
}
