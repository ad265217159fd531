import BlobHTTP
import Blobs

/// A file at a server, as the server describes it without sending its bytes.
public struct RemoteFile: Sendable, Hashable {
  /// In bytes; nil: the server does not tell it.
  public var length: Int64?
  /// Differs between two versions of the file, as an ETag with a date does; nil: the server tells nothing of the kind.
  public var version: String?
  /// The SHA-256 of its bytes, computed by the server; nil: it was not told.
  public var sha256: [UInt8]?
  /// The digest that a `VersionQuery` has asked for; nil: it was not told.
  var digest: DigestValue?

  /// nil: no digest of this algorithm was told.
  func digest(_ algorithm: DigestAlgorithm) -> [UInt8]? {
    if let digest, digest.algorithm == algorithm { return digest.bytes }
    return algorithm == .sha256 ? sha256 : nil
  }

  /// Creates a description. `length` is in bytes.
  public init(length: Int64?, version: String? = nil, sha256: [UInt8]? = nil) {
    (self.length, self.version, self.sha256) = (length, version, sha256)
  }

  /// The version is made of the fields that change with the file. RFC 9110 §8.8. A weak ETag may stay when bytes change. Many
  /// servers tell times in whole seconds, in the ETag too, so a file that was written a moment ago has no version yet.
  /// - `hasTagOfContent`: the ETag depends on the bytes and not on a time.
  init(length: Int64?, _ headers: HTTPHeaders, hasTagOfContent: Bool = false) {
    self.init(length: length)
    let (tag, date) = (headers["ETag"], headers["Last-Modified"])
    if tag?.hasPrefix("W/") == true { return }
    if !hasTagOfContent, let now = headers["Date"].flatMap(HTTPDate.seconds), let date = date.flatMap(HTTPDate.seconds),
      now.subtractingClamped(date) < 2
    {
      return
    }
    // A version of many bytes would make the journal large.
    let fields = [tag, date].compactMap(\.self).joined(separator: " ")
    if !fields.isEmpty, fields.utf8.count <= 512 { version = fields }
  }
}

extension UploadProtocol {
  /// Asks with HEAD for the place from which the file can be read. If the response does not tell the expected length, GET for
  /// the first byte does.
  public func remoteFile(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> RemoteFile? {
    var request = HTTPRequest("HEAD", try await place(of: target, location: location, with))
    let response = try await with.send(following: &request)
    if [404, 410].contains(response.status) { return nil }
    let refusal = UploadError(request, response)
    if !response.isSuccess, response.refusesAll { throw refusal }
    if !response.isSuccess, case .retry = refusal.recovery { throw refusal }
    let told = response.isSuccess ? response.headers.bytes("Content-Length") : nil
    // Some servers report a length of 0 for every HEAD, and others do not know HEAD.
    if let told, told > 0 || told == target.length { return RemoteFile(length: told, response.headers) }
    switch try await with.lengthByGet(of: request.url, expecting: target.length) {
    case .missing: return nil
    case .found(let length): return RemoteFile(length: length, response.isSuccess ? response.headers : [:])
    case .noContent: return RemoteFile(length: 0)
    case .hidden:
      var error = refusal
      (error.recovery, error.side) = (.giveUp, .file)
      throw error
    }
  }

  /// Asks for the list that a Fullbore server gives to scripts.
  public func listEntries(
    in folder: HTTPURL, _ with: UploadContext, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool {
    var next: String?
    var seen: Set<Int> = []
    repeat {
      let query = "limit=500" + (next.map { "&after=\($0)" } ?? "")
      var request = HTTPRequest("GET", folder.withQuery(query), ["Accept": "application/json"])
      let response = try await with.send(following: &request)
      try with.checkListing(request, response)
      guard response.isSuccess, let page: JSONPage = JSONColumn.decode(String(decoding: response.body, as: UTF8.self))
      else { return false }
      try await take(page.entries.map(\.listed))
      next = page.next
      // A server that repeats pages would be asked for ever.
      if let next, !seen.insert(next.hashValue).inserted || seen.count > ListedEntry.mostPages {
        throw .endlessListing(request)
      }
    } while next != nil
    return true
  }
}

/// A page of a folder's entries, as a Fullbore server tells it.
private struct JSONPage: Decodable {
  struct Entry: Decodable {
    var name: String
    var url: String?
    var folder: Bool

    /// The name as bytes is in the URL, unless the server lets nobody read files.
    var listed: ListedEntry {
      guard let url else { return ListedEntry(BytePath(name), isFolder: folder) }
      let bytes = PercentCoding.decoded(url.dropFirst(2).prefix { $0 != "?" }.utf8)
      return ListedEntry(
        BytePath(folder && bytes.last == UInt8(ascii: "/") ? bytes.dropLast() : bytes), isFolder: folder)
    }
  }
  var entries: [Entry]
  var next: String?
}
