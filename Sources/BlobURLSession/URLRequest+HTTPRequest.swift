import BlobHTTP
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLRequest {
  /// The request without a body. nil: Foundation does not accept the URL.
  package init?(_ request: HTTPRequest) {
    guard let url = URL(string: request.url.strict.text) else { return nil }
    self.init(url: url)
    httpMethod = request.method
    // URLSession manages `Connection` itself, and the other field asks for something only together with that.
    for (name, value) in request.headers.fields
    where !name.isSameField("Connection") && !name.isSameField("Upload-Interim") {
      addValue(value, forHTTPHeaderField: name)
    }
  }
}
