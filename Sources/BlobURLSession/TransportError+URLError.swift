import BlobHTTP
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension TransportError {
  /// Converts an error of Foundation.
  package init(_ error: any Error, _ name: String) {
    if let own = (error as? URLError)?.userInfo[Self.key] as? TransportError {
      self = own
      return
    }
    let code: Code =
      switch (error as? URLError)?.code {
      case .cannotFindHost, .dnsLookupFailed: .resolve
      // The system does not let the app use the network now: that is no fault of the file.
      case .cannotConnectToHost, .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
        .connect
      case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot: .untrusted
      case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
        .clientCertificateRejected, .clientCertificateRequired:
        .tls
      case .timedOut: .timeout
      case .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData: .badResponse
      case .badURL, .unsupportedURL, .appTransportSecurityRequiresSecureConnection,
        .userAuthenticationRequired,
        .cannotLoadFromNetwork:
        .badRequest
      case .cancelled: .cancelled
      default: .broken
      }
    self.init(code, "\(name): \(error.localizedDescription)")
  }
  /// Converts this error for Foundation. The source's error is the underlying error: `BlobError(underlying:)`.
  var urlError: URLError {
    let code: URLError.Code =
      switch self.code {
      case .resolve: .cannotFindHost
      case .connect, .proxy: .cannotConnectToHost
      case .untrusted: .serverCertificateUntrusted
      case .tls: .secureConnectionFailed
      case .timeout: .timedOut
      case .badResponse, .longResponse: .badServerResponse
      case .badRequest: .badURL
      case .cancelled: .cancelled
      case .broken: .networkConnectionLost
      default: .unknown
      }
    var info: [String: Any] = [NSLocalizedDescriptionKey: message, Self.key: self]
    info[NSUnderlyingErrorKey] = cause
    return URLError(code, userInfo: info)
  }

  /// The key of the original `TransportError` in a `URLError`'s user info.
  private static let key = "BlobTransportError"
}

/// `localizedDescription` is `message`, in English.
extension TransportError: LocalizedError {
  public var errorDescription: String? { message }
}
