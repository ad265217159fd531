import BlobHTTP
import Blobs

/// An object or a folder, as the list of a bucket tells it.
package struct S3Entry: Sendable {
  /// The name in its folder, without a slash at its end.
  package var name: BytePath
  package var isFolder: Bool
  package var length: Int64 = 0
  /// The ETag; nil for a folder.
  package var tag: String?
  /// The time of its last change, in seconds since 1970; nil: it was not told.
  package var modified: Int64?
}

/// A page of the list of a folder.
package struct S3Page: Sendable {
  package var entries: [S3Entry]
  /// nil: this is the last page.
  package var next: S3Cursor?
}

/// The place in a list where the next page begins.
package struct S3Cursor: Sendable {
  fileprivate var token: String
  fileprivate var lastFolder: [UInt8]
  /// The number of pages before it.
  fileprivate var number: Int
}

/// The facts that HEAD tells of an object.
package struct S3Head: Sendable {
  package var length: Int64
  package var tag: String
  /// The time of its last change, in seconds since 1970; nil: it was not told.
  package var modified: Int64?
  /// The modification time of the file that it was made of, as its client has sent it; nil: it is not known.
  package var fileTime: String?
}

// Objects as the files of a server that stores in a bucket what it receives.
extension S3Multipart {
  /// nil: no object has this name.
  package func head(of url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> S3Head? {
    let request = Self.head(url)
    let response = try await send(request, nil, with)
    if [404, 410].contains(response.status) { return nil }
    guard response.isSuccess else { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
    guard let length = response.headers.bytes("Content-Length"), let tag = response.headers["ETag"] else {
      throw UploadError(
        .giveUp, .destination, "HEAD \(url): answered \(response.status) without Content-Length and ETag: is this S3?",
        status: response.status)
    }
    return S3Head(
      length: length, tag: tag, modified: response.headers["Last-Modified"].flatMap { HTTPDate.seconds($0) },
      fileTime: response.headers["x-amz-meta-\(ModificationTime.key)"])
  }

  /// Deletes an object. Succeeds if there is none.
  package func delete(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", url)
    let response = try await send(request, nil, with)
    if !response.saysDeleted { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
  }

  /// Reads bytes of the version of an object that has this ETag. `received` gets them on a thread that may block. Throws if
  /// the object has another version. `range` is not empty.
  package func read(
    _ url: HTTPURL, _ range: Range<Int64>, of tag: String, _ with: UploadContext,
    _ received: @escaping @Sendable (UnsafeRawBufferPointer) throws(BlobError) -> Void
  ) async throws(UploadError) {
    var request = HTTPRequest("GET", url, ["If-Match": tag])
    request.headers["Range"] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    let exchange = Exchange(
      received: received,
      began: { head throws(BlobError) in
        // A server without ranges answers with the whole object, which the range may be.
        let isRange =
          head.status == 206 || range.lowerBound == 0 && head.headers.bytes("Content-Length") == Int64(range.count)
        if isRange, head.headers["ETag"] ?? tag == tag { return }
        throw BlobError(.changed, "GET \(url): answered \(head.status) with other bytes than were asked for")
      })
    let response = try await with.exchange(request, nil, exchange)
    if !response.isSuccess { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
  }

  /// Begins a multipart upload, whatever has its name.
  package func beginParts(of target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadSession {
    try check(target)
    guard case .parts(_, let session) = try await begin(target, with) else {
      preconditionFailure("a new upload is no object yet")
    }
    return session
  }

  /// The session, for a completion that makes the object as `target` says.
  package func session(_ session: UploadSession, for target: UploadTarget) -> UploadSession {
    var session = session
    session.state["overwrite"] = target.overwrite ? "true" : nil
    session.state["replaced"] = if case .version(let tag) = target.replaced { tag } else { nil }
    return session
  }

  /// Whether an object with this ETag consists of these parts, as far as most servers make ETags.
  package func isResult(_ tag: String, of parts: [PartReceipt]) -> Bool {
    !parts.isEmpty && Self.tag(of: parts) == tag.unquoted
  }

  /// A page of a folder's list (ListObjectsV2), in the order of the server; nil: the server has no such list. `cursor`: of
  /// the page before; nil: this is the first one. `most`: of the entries.
  package func page(
    of folder: HTTPURL, after cursor: S3Cursor? = nil, most: Int = 500, _ with: UploadContext
  ) async throws(UploadError) -> S3Page? {
    guard let (list, next) = try await list(folder, after: cursor, ["delimiter=%2F", "max-keys=\(most)"], with) else {
      return nil
    }
    var last = cursor?.lastFolder ?? []
    var page = S3Page(entries: Self.entries(list, below: Array(folder.key(in: bucketPath)), &last), next: next)
    page.next?.lastFolder = last
    return page
  }

  /// The lengths of all objects in a folder and below, added up page by page, without those in its folder `hidden`; nil:
  /// the server has no such list.
  package func totalLength(
    below folder: HTTPURL, without hidden: [UInt8], after cursor: S3Cursor? = nil, _ with: UploadContext
  ) async throws(UploadError) -> (bytes: Int64, next: S3Cursor?)? {
    guard let (list, next) = try await list(folder, after: cursor, [], with) else { return nil }
    let isEncoded = list.text("EncodingType") == "url"
    let hidden = Array(folder.key(in: bucketPath)) + hidden + [UInt8(ascii: "/")]
    let counted = list.all("Contents").lazy.filter { object in
      object.text("Key").map { !Self.key($0, isEncoded).starts(with: hidden) } ?? false
    }
    return (counted.compactMap { $0.text("Size").flatMap { Int64(digits: $0) } }.clampedSum, next)
  }

  /// A page of the list of all keys that begin with that of `folder`. `more`: further parameters.
  private func list(
    _ folder: HTTPURL, after cursor: S3Cursor?, _ more: [String], _ with: UploadContext
  ) async throws(UploadError) -> (XMLTree, next: S3Cursor?)? {
    let prefix = Array(folder.key(in: bucketPath))
    var query = more + ["encoding-type=url", "list-type=2"]
    if let cursor { query.append("continuation-token=\(cursor.token.asQueryValue)") }
    if !prefix.isEmpty { query.append("prefix=\(HTTPURL.encode(prefix).replacingSlashes)") }
    let request = HTTPRequest("GET", bucket(at: folder).withQuery(query.sorted().joined(separator: "&")))
    let response = try await send(request, nil, with)
    try with.checkListing(request, response)
    guard response.isSuccess, let list = XMLTree(response.body), list.name == "ListBucketResult" else { return nil }
    if list.text("IsTruncated") != "true" { return (list, nil) }
    guard let token = list.text("NextContinuationToken") else {
      throw UploadError(
        .giveUp, .file,
        "\(request.method) \(folder): the server says that it has listed a part only, and not how to go on (ListObjectsV2)"
      )
    }
    let number = (cursor?.number ?? 0) + 1
    if number >= ListedEntry.mostPages { throw .endlessListing(request) }
    return (list, S3Cursor(token: token, lastFolder: [], number: number))
  }

  /// `last`: the folder that was found last.
  private static func entries(_ list: XMLTree, below prefix: [UInt8], _ last: inout [UInt8]) -> [S3Entry] {
    let isEncoded = list.text("EncodingType") == "url"
    func name(_ element: XMLTree, _ child: String) -> [UInt8]? {
      guard let key = element.text(child).map({ Self.key($0, isEncoded) }), key.starts(with: prefix) else { return nil }
      return key.count > prefix.count ? Array(key.dropFirst(prefix.count)) : nil
    }
    var (files, folders): ([S3Entry], [S3Entry]) = ([], [])
    for object in list.all("Contents") {
      guard let key = name(object, "Key") else { continue }
      // A server that knows no delimiter lists what is in the folders below, in order of the keys.
      if let slash = key.firstIndex(of: UInt8(ascii: "/")) {
        let folder = Array(key[..<slash])
        if folder != last { folders.append(S3Entry(name: BytePath(folder), isFolder: true)) }
        last = folder
      } else {
        files.append(
          S3Entry(
            name: BytePath(key), isFolder: false, length: object.text("Size").flatMap { Int64(digits: $0) } ?? 0,
            tag: object.text("ETag"), modified: object.text("LastModified").flatMap(Self.seconds)))
      }
    }
    for common in list.all("CommonPrefixes") {
      if let key = name(common, "Prefix") { folders.append(S3Entry(name: BytePath(key.dropLast()), isFolder: true)) }
    }
    return files + folders
  }
}
