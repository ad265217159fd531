import BlobTesting
import TestSupport

/// The protocols of a push; each is a column. A new protocol needs one line here.
enum FaultColumn: String, CaseIterable {
  case put = "PUT"
  case tus, resumable, form
  case dav = "WebDAV"
  case s3 = "S3"
  case gcs = "Google"

  /// The arguments for a destination with this protocol at the server's URL.
  func destination(_ url: String) -> [String] {
    switch self {
    case .put, .tus, .resumable, .form: [rawValue.lowercased() + "+" + url]
    case .dav: ["dav+" + url]
    case .gcs: ["gcs+" + url + (url.hasSuffix("/") ? "" : "/") + "media/"]
    // With one connection, the request for the bucket comes first.
    case .s3: ["--endpoint", url, "--jobs", "1", "--parts-at-once", "1", "s3://media/"]
    }
  }

  var environment: [String: String] { self == .s3 ? S3Peer.environment : [:] }

  /// The first responses of a scripted server, before the upload.
  var greeting: [ScriptedPeer.Step] {
    switch self {
    case .form: []
    // Like Fullbore's server, it compares the content of existing names, so the client does not check names first.
    case .put:
      Self.answer(
        "204 No Content",
        "Allow: PUT\r\nTus-Version: 1.0.0\r\nUpload-Limit: max-age=86400\r\nWant-Content-Digest: sha-256=1\r\n")
    case .tus:
      Self.answer(
        "204 No Content",
        "Tus-Resumable: 1.0.0\r\nTus-Version: 1.0.0\r\nTus-Extension: creation,creation-with-upload\r\n")
    case .resumable: Self.answer("204 No Content", "Upload-Limit: max-age=86400\r\n")
    case .dav: Self.answer("200 OK", "DAV: 1, 2\r\nContent-Length: 0\r\n")
    case .s3: Self.answer("200 OK", content: "<ListBucketResult/>")
    case .gcs: Self.answer("200 OK", content: "{}")
    }
  }

  /// The response when a large upload is created.
  var creation: [ScriptedPeer.Step] {
    switch self {
    case .put, .form: []
    case .tus: Self.answer("201 Created", "Location: /up/1\r\nUpload-Offset: 0\r\nContent-Length: 0\r\n")
    case .resumable: Self.answer("201 Created", "Location: /up/1\r\nUpload-Complete: ?0\r\nContent-Length: 0\r\n")
    // The name, and then its folder, which is there.
    case .dav: Self.nothing + Self.answer("405 Method Not Allowed", "Content-Length: 0\r\n")
    case .gcs: Self.answer("200 OK", "Location: /up/1\r\nContent-Length: 0\r\n")
    case .s3:
      Self.nothing
        + Self.answer(
          "200 OK",
          content: "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
    }
  }

  /// A response that claims more bytes than the file has.
  var lie: [ScriptedPeer.Step]? {
    let offset = "Upload-Offset: 5000\r\n"
    switch self {
    case .put, .form, .dav, .s3, .gcs: return nil
    case .tus: return Self.answer("201 Created", "Location: /up/1\r\n\(offset)Content-Length: 0\r\n")
    case .resumable: return creation + Self.answer("204 No Content", "Upload-Complete: ?0\r\n\(offset)")
    }
  }

  private static let nothing = answer("404 Not Found", "Content-Length: 0\r\n")

  private static func answer(_ status: String, _ fields: String = "", content: String? = nil) -> [ScriptedPeer.Step] {
    let length = content.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
    return [.readRequest, .send("HTTP/1.1 \(status)\r\n\(fields)\(length)\r\n\(content ?? "")")]
  }
}
