import BlobHTTP
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension TransportError {
  /// Foundation's verdict in our terms.
  init(_ error: any Error, _ name: String) {
    let code: Code =
      switch (error as? URLError)?.code {
      case .cannotFindHost, .dnsLookupFailed: .resolve
      case .cannotConnectToHost, .notConnectedToInternet: .connect
      case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot: .untrusted
      case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
        .clientCertificateRejected, .clientCertificateRequired:
        .tls
      case .timedOut: .timeout
      case .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData: .badResponse
      case .badURL, .unsupportedURL: .badRequest
      case .cancelled: .cancelled
      default: .broken
      }
    self.init(code, "\(name): \(error.localizedDescription)")
  }
}
