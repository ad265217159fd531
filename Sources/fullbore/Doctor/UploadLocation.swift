import BlobHTTP
import Blobs

/// The URL by which a server names an upload, compared with the URL by which the client has reached it.
struct UploadLocation: Sendable {
  /// As the server has written it.
  let text: String
  /// The server's URL; nil: it is none.
  let url: HTTPURL?
  let endpoint: HTTPURL

  init(_ text: String, of request: HTTPURL, at endpoint: HTTPURL) {
    (self.text, self.endpoint) = (text, endpoint)
    url = request.resolve(text)
  }

  /// The differences from the URL of the destination; empty: there are none.
  var differences: [String] {
    guard let url else { return ["it is no URL"] }
    var found: [String] = []
    if url.scheme != endpoint.scheme { found.append("the scheme is \(url.scheme) instead of \(endpoint.scheme)") }
    if url.host != endpoint.host { found.append("the host is \(url.host) instead of \(endpoint.host)") }
    // The usual port of the wrong scheme is no mistake of its own.
    let isUsual = url.scheme != endpoint.scheme && (url.port == 80 || url.port == 443)
    if url.port != endpoint.port, !isUsual { found.append("the port is \(url.port) instead of \(endpoint.port)") }
    return found
  }

  /// The folder of the destination, if the URL is not below it: a proxy may have removed that part of the path.
  var lostPrefix: String? {
    let folder = endpoint.path.hasSuffix("/") ? endpoint.path : endpoint.path + "/"
    guard let url, folder != "/", !url.path.hasPrefix(folder) else { return nil }
    return folder
  }

  /// The same upload at the origin of the destination.
  private func corrected(prefix: String?) -> HTTPURL? {
    guard let url else { return nil }
    return HTTPURL(endpoint.origin + (prefix.map { $0.dropLast() + url.path } ?? url.path))
  }

  /// The kind of upload at a URL by which the server may mean the new one.
  private enum Content {
    case nothing, new, other
    /// An upload is there, and the response lacks `Upload-Offset`.
    case withoutOffset
  }

  /// Asks for the upload, which has `length` bytes. Returns the URL at which it is, if any, and what is wrong with the
  /// server's own. An upload that is not new is somebody's, so nothing is written to it.
  func examined(
    _ length: Int64, _ dialect: UploadDialect, _ target: DoctorTarget, _ transport: any Transport
  ) async -> (HTTPURL?, Finding?) {
    var places: [(url: HTTPURL, isWrong: Bool, prefix: String?)] = []
    if differences.isEmpty, let url { places.append((url, false, nil)) }
    for prefix in [nil, lostPrefix] { if let url = corrected(prefix: prefix) { places.append((url, true, prefix)) } }
    for place in places {
      switch await content(of: place.url, length, dialect, target, transport) {
      case .nothing: continue
      case .new: return (place.url, place.isWrong ? finding(differences, prefix: place.prefix) : nil)
      case .withoutOffset: return (place.url, .field("Upload-Offset", of: .responses, Self.withoutOffset))
      case .other: return (nil, finding(["the upload there is not the one that was just begun"], prefix: nil))
      }
    }
    return (nil, finding(differences.isEmpty ? ["there is no upload at this URL"] : differences, prefix: lostPrefix))
  }

  private func content(
    of url: HTTPURL, _ length: Int64, _ dialect: UploadDialect, _ target: DoctorTarget, _ transport: any Transport
  ) async -> Content {
    let question = dialect.request("HEAD", url)
    let request = target.request("HEAD", url, question.headers)
    // Without a response, it is not there.
    guard let response = try? await target.answer(to: request, over: transport), response.isSuccess else {
      return .nothing
    }
    guard let offset = response.headers.bytes("Upload-Offset") else {
      let isUpload = response.headers["Upload-Offset"] == nil && response.headers.bytes("Upload-Length") == length
      return isUpload ? .withoutOffset : .nothing
    }
    return offset == 0 && response.headers.bytes("Upload-Length") ?? length == length ? .new : .other
  }

  private static let withoutOffset = "the response to HEAD of an upload has its Upload-Length and no Upload-Offset"

  private func finding(_ differences: [String], prefix: String?) -> Finding {
    let list = (differences + (prefix.map { ["the path lacks \($0)"] } ?? [])).joined(separator: ", ")
    let addresses = self.differences.isEmpty ? [] : Mend.location(prefix: nil)
    let paths = prefix.map { Mend.location(prefix: $0) } ?? []
    return Finding(
      kind: .location,
      what: "the server names an upload by \(text.prefix(200).prefix { $0 != "?" }), which leads elsewhere: \(list)",
      consequence: "Uploads begin and cannot go on: their URL is not that of the proxy.",
      mends: addresses + paths)
  }
}
