import BlobHTTP
import BlobURLSession
import Foundation
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

struct URLErrorTests {
  /// A second request would be refused in the same way.
  @Test(arguments: [
    URLError.Code.appTransportSecurityRequiresSecureConnection, .userAuthenticationRequired, .badURL, .unsupportedURL,
  ])
  func aRequestThatTheSystemRefusesIsNotSentAgain(_ code: URLError.Code) {
    #expect(TransportError(URLError(code), "PUT http://nas.example/a").code == .badRequest)
  }

  @Test func aLostConnectionIsRepeated() {
    #expect(TransportError(URLError(.networkConnectionLost), "PUT http://nas.example/a").code == .broken)
  }

  /// The system does not let the app use the network now. That is no fault of the file.
  @Test(arguments: [
    URLError.Code.notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive,
  ])
  func aForbiddenNetworkIsAnErrorOfTheConnection(_ code: URLError.Code) {
    #expect(TransportError(URLError(code), "PUT http://nas.example/a").code == .connect)
  }
}
