import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs

extension UploadDestination {
  /// Discovers a destination that names its protocol as on the command line; nil: the server is asked.
  package static func discover(
    _ endpoint: HTTPURL, named name: String?, headers: HTTPHeaders = [:], checksum: Digest.Algorithm? = nil,
    form: FormPost = FormPost(), isStream: Bool = false, asksForNames: Bool = false, asksServer: Bool = false,
    rereading: (@Sendable () -> HTTPHeaders?)? = nil,
    retrying: (@Sendable (UploadError, Duration) -> Void)? = nil, over transport: any Transport
  ) async throws(UploadError) -> UploadDestination {
    var settings = ProtocolSettings()
    (settings.checksum, settings.form, settings.isStream) = (checksum, form, isStream)
    (settings.asksForNames, settings.asksServer) = (asksForNames, asksServer)
    return try await discover(
      endpoint, speaking: KnownProtocols.discovery(name, settings, at: endpoint), headers: headers,
      rereading: rereading, retrying: retrying, over: transport)
  }
}
