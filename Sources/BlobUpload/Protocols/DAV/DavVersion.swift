import BlobHTTP

/// The version of a file that a WebDAV server reports. It shows whether the file has changed.
struct DavVersion: Sendable, Hashable {
  /// The ETag, without the prefix of a weak one: servers with weak ETags change them together with the bytes, too.
  private let tag: String?
  /// Seconds since 1970, from `Last-Modified`.
  private let modified: Int64?
  /// Maximum length in bytes; a longer ETag is ignored, so that the journal stays small.
  private static let longestTag = 256

  init(_ headers: HTTPHeaders) {
    let tag = headers["ETag"].map { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : $0 }
    self.tag = tag.flatMap { $0.isEmpty || $0.utf8.count > Self.longestTag ? nil : $0 }
    modified = headers["Last-Modified"].flatMap { HTTPDate.seconds($0) }
  }

  /// Parses a location from the journal; nil if an earlier release has stored no version.
  init?(journaled location: String?) {
    guard let location, let start = location.utf8.firstIndex(of: UInt8(ascii: "#")) else { return nil }
    let words = location[location.utf8.index(after: start)...].split(separator: "&", omittingEmptySubsequences: false)
    guard words.count == 2 else { return nil }
    tag = words[0].isEmpty ? nil : String(decoding: PercentCoding.decoded(words[0].utf8), as: UTF8.self)
    modified = Int64(words[1])
  }

  /// The value for `UploadResult.state`; nil if the server reports neither value.
  var text: String? {
    tag == nil && modified == nil ? nil : "\(HTTPURL.encode((tag ?? "").utf8))&\(modified.map(String.init) ?? "")"
  }

  /// Whether the file has changed since version `old`; false if the two have no common field to compare.
  func isChanged(since old: DavVersion) -> Bool {
    if let tag, let other = old.tag { return tag != other }
    return isModified(since: old)
  }

  /// Like `isChanged`, by the modification time only.
  func isModified(since old: DavVersion) -> Bool {
    if let modified, let other = old.modified { return modified != other }
    return false
  }
}

extension UploadContext {
  /// Whether the file of an earlier upload still exists, with the length and the version that it had then.
  func isThere(_ target: UploadTarget, since old: DavVersion?) async throws(UploadError) -> Bool {
    guard let now = try await version(of: target) else { return false }
    guard let old, now.isChanged(since: old) else { return true }
    // A server may generate a new ETag for each response. Such an ETag is useless; the modification time may still be
    // valid.
    guard let again = try await version(of: target) else { return false }
    return again.isChanged(since: now) && !again.isModified(since: old)
  }

  /// nil: there is no file of the right length, or the server does not report its length. The file is then sent again,
  /// and compared.
  private func version(of target: UploadTarget) async throws(UploadError) -> DavVersion? {
    let request = HTTPRequest("HEAD", target.url)
    let response = try await send(request)
    if [404, 410].contains(response.status) { return nil }
    guard response.isSuccess else { throw UploadError(request, response) }
    if let length = target.length {
      // Some servers report no length for content that they would compress, or a length of 0 for every HEAD.
      let announced = response.headers.bytes("Content-Length")
      let isKnown = announced == length || announced ?? 0 > 0
      let size = isKnown ? announced : try await lengthByGet(of: target.url, expecting: length).bytes
      if size != length { return nil }
    }
    return DavVersion(response.headers)
  }
}
