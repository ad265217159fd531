import BlobHTTP
import Blobs

/// The bucket and the name of an object, and the URLs of the JSON API for it.
struct CloudObject: Sendable {
  /// URL of the object, or of a folder.
  let url: HTTPURL
  let bucket: String
  /// Percent-encoded, including slashes, since the name is one component of a path.
  let encodedName: String

  /// `https://host/bucket/folder/name`.
  init(_ url: HTTPURL) throws(UploadError) {
    let path = url.path.utf8.dropFirst()
    let bucket = path.prefix { $0 != UInt8(ascii: "/") }
    self.url = url
    self.bucket = String(Substring(bucket))
    let name = PercentCoding.decoded(path.dropFirst(bucket.count + 1))
    encodedName = HTTPURL.encode(name).split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
    if self.bucket.isEmpty { throw UploadError(.giveUp, .destination, "\(url): there is no bucket in it") }
  }

  /// https://cloud.google.com/storage/docs/objects#naming
  init(_ target: UploadTarget) throws(UploadError) {
    try self.init(target.url)
    func refuse(_ why: String) -> UploadError {
      UploadError(.giveUp, .file, "\(target.path): \(why), which Google Cloud Storage does not take as a name")
    }
    guard let name = String(validating: PercentCoding.decoded(encodedName.utf8), as: UTF8.self) else {
      throw refuse("it is not UTF-8")
    }
    if name.isEmpty || name == "." || name == ".." { throw refuse("it is empty, or a dot or two") }
    if name.utf8.count > 1024 { throw refuse("with its folders it has \(name.utf8.count) bytes, over 1,024") }
    if name.utf8.contains(where: { $0 == 10 || $0 == 13 }) { throw refuse("it has the end of a line in it") }
  }

  init(_ session: UploadSession) throws(UploadError) {
    guard let url = session.state["object"].flatMap({ HTTPURL($0) }) else {
      throw UploadError(.restart, .journal, "the object's URL is missing from the journal")
    }
    try self.init(url)
  }

  /// The error for a refusal to start an upload, or to list objects.
  func refusal(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    if response.status != 404 { return UploadError(creating: request, response) }
    return UploadError(
      .giveUp, .destination,
      "\(url.origin) has no bucket called \(bucket), or this is not Google Cloud Storage: \(request.method) \(request.url) "
        + "was answered 404", status: 404)
  }

  var uploadURL: HTTPURL { place("/upload/storage/v1/b/\(bucket)/o") }
  var bucketURL: HTTPURL { place("/storage/v1/b/\(bucket)/o") }
  var objectURL: HTTPURL { place("/storage/v1/b/\(bucket)/o/\(encodedName)") }

  // An absolute path can always be resolved.
  private func place(_ path: String) -> HTTPURL { url.resolve(path)! }
}

/// The metadata of an object that the server reports.
struct CloudFacts: Sendable {
  var size: Int64?
  /// Base64.
  var crc32c: String?
  var md5: String?
  var generation: String?
  /// The part that an `UploadResult` stores.
  var version: [String: String] { generation.map { ["version": $0] } ?? [:] }

  init(_ json: [UInt8]) {
    func value(_ name: String) -> String? { JSONPath(name)?.value(in: json) }
    size = value("size").flatMap { Int64(digits: $0) }
    (crc32c, md5) = (value("crc32c"), value("md5Hash"))
    generation = value("generation").flatMap { Int64(digits: $0) }.map { String($0) }
  }
}
