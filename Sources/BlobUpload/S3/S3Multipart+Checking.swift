import BlobHTTP
import Blobs

// Comparing files with the objects of a bucket.
extension S3Multipart {
  public func remoteFile(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> RemoteFile? {
    let request = Self.head(target.url)
    let response = try await send(request, nil, with)
    if [404, 410].contains(response.status) { return nil }
    guard response.isSuccess else { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
    return RemoteFile(length: response.headers.bytes("Content-Length"), response.headers, hasTagOfContent: true)
  }

  /// ListObjectsV2.
  public func listEntries(
    in folder: HTTPURL, _ with: UploadContext, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool {
    let prefix = Array(folder.key(in: bucketPath))
    var token: String?
    var (pages, last) = (0, [UInt8]())
    repeat {
      var query = token.map { ["continuation-token=\($0.asQueryValue)"] } ?? []
      query += ["delimiter=%2F", "encoding-type=url", "list-type=2", "max-keys=500"]
      if !prefix.isEmpty { query.append("prefix=\(HTTPURL.encode(prefix).replacingSlashes)") }
      let request = HTTPRequest("GET", bucket(at: folder).withQuery(query.joined(separator: "&")))
      let response = try await send(request, nil, with)
      try with.checkListing(request, response)
      guard response.isSuccess, let list = XMLTree(response.body), list.name == "ListBucketResult" else { return false }
      let isEncoded = list.text("EncodingType") == "url"
      func names(_ elements: [XMLTree], _ name: String) -> [BytePath] {
        elements.compactMap { $0.text(name) }.map { Self.key($0, isEncoded) }.filter { $0.starts(with: prefix) }
          .map { BytePath($0.dropFirst(prefix.count)) }
      }
      let keys = names(list.all("Contents"), "Key").filter { !$0.isEmpty }
      let files = keys.filter { !$0.bytes.contains(UInt8(ascii: "/")) }
      var folders = names(list.all("CommonPrefixes"), "Prefix").map { BytePath($0.bytes.dropLast()) }
      // A server that knows no delimiter lists what is in the folders below, in order of the keys.
      for key in keys {
        guard let slash = key.bytes.firstIndex(of: UInt8(ascii: "/")) else { continue }
        let folder = Array(key.bytes[..<slash])
        if folder != last { folders.append(BytePath(folder)) }
        last = folder
      }
      try await take(
        files.map { ListedEntry($0, isFolder: false) } + folders.map { ListedEntry($0, isFolder: true) })
      pages += 1
      guard list.text("IsTruncated") == "true" else { return true }
      token = list.text("NextContinuationToken")
      if token == nil {
        throw UploadError(
          .giveUp, .file,
          "\(request.method) \(folder): the server says that it has listed a part only, and not how to go on "
            + "(ListObjectsV2)")
      }
      if pages >= ListedEntry.mostPages { throw .endlessListing(request) }
    } while true
  }
}
