import BlobHTTP
import Blobs

extension S3Multipart {
  /// Uploads per page: their names may be long, and only 1 MiB of a response is read.
  private static let page = 200
  /// Maximum numbers of pages in a list, and of uploads in it.
  private static let (mostPages, mostUploads) = (10_000, 2_000_000)

  /// Where a page of a list begins.
  private struct Marker: Hashable {
    var key: String
    var id: String
  }

  /// Calls `take` with the unfinished uploads of objects whose names begin with `prefix`, with the sizes of their
  /// parts: once for each page of the server's list, so that only one page is in memory. `take` may delete these
  /// uploads. `endpoint`: any URL in the bucket. Throws if a list has more than 10,000 pages or two million uploads.
  public func orphans(
    _ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([OrphanedUpload]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    try await unfinished(prefix, at: endpoint, with) { (found: [OrphanedUpload]) async throws(UploadError) in
      var found = found
      for index in found.indices { try await measure(&found[index], with) }
      try await take(found)
    }
  }

  /// Lists as `orphans` does, without the sizes.
  package func unfinished(
    _ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([OrphanedUpload]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    var seen = 0
    var marker: Marker?
    // Hashes instead of markers, because a server's markers may be as long as a response.
    var before: Set<Int> = []
    var encoding: String? = "encoding-type=url"
    let bucket = bucket(at: endpoint)
    while true {
      var query = [encoding, "max-uploads=\(Self.page)"].compactMap(\.self)
      if let marker { query.append("key-marker=\(marker.key.asQueryValue)") }
      if !prefix.isEmpty { query.append("prefix=\(HTTPURL.encode(prefix).replacingSlashes)") }
      if let marker { query.append("upload-id-marker=\(marker.id.asQueryValue)") }
      query.append("uploads=")
      let request = HTTPRequest("GET", bucket.withQuery(query.joined(separator: "&")))
      let response = try await send(request, nil, with)
      guard response.isSuccess else { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
      guard let list = XMLTree(response.body), list.name.hasPrefix("ListMultipartUploads") else {
        throw UploadError(
          .giveUp, .destination,
          "GET \(request.url): answered \(response.status) without a list of uploads, as S3 never does. Is the endpoint "
            + "right?", status: response.status)
      }
      let isEncoded = list.text("EncodingType") == "url"
      let uploads = list.all("Upload")
      let now = response.headers["Date"].flatMap { HTTPDate.seconds($0) }
      // Ceph encodes names as requested without saying so; other servers do not know the parameter.
      if encoding != nil, !isEncoded, uploads.contains(where: { $0.text("Key")?.contains("%") == true }) {
        encoding = nil
        continue
      }
      var found: [OrphanedUpload] = []
      for upload in uploads {
        guard let key = upload.text("Key"), let id = upload.text("UploadId") else { continue }
        let bytes = Self.key(key, isEncoded)
        // Some servers ignore the prefix.
        guard bytes.starts(with: prefix) else { continue }
        var orphan = OrphanedUpload(
          url: bucket.appending(pathBytes: bytes), name: bytes, id: id,
          begun: upload.text("Initiated").flatMap(Self.seconds))
        if let now, let begun = orphan.begun { orphan.age = now.subtractingClamped(begun) }
        found.append(orphan)
      }
      seen += uploads.count
      try await take(found)
      if list.text("IsTruncated") != "true" { return }
      guard let next = list.text("NextKeyMarker") else {
        throw UploadError(
          .giveUp, .destination,
          "GET \(request.url): the list of uploads goes on, and the server does not say where (no NextKeyMarker): seen "
            + "\(seen) of them")
      }
      let after = Marker(
        key: String(decoding: Self.key(next, isEncoded), as: UTF8.self), id: list.text("NextUploadIdMarker") ?? "")
      // Some servers do not sort their lists, so only a repeated marker proves a loop.
      guard before.count < Self.mostPages, seen < Self.mostUploads, before.insert(after.hashValue).inserted else {
        throw UploadError(
          .giveUp, .destination,
          "GET \(request.url): the list of uploads does not end: seen after \(before.count) pages")
      }
      marker = after
    }
  }

  /// The unfinished uploads of one object, without their sizes.
  package func unfinished(of object: HTTPURL, _ with: UploadContext) async throws(UploadError) -> [OrphanedUpload] {
    let key = Array(object.key(in: bucketPath))
    var found: [OrphanedUpload] = []
    try await unfinished(key, at: object, with) { (page: [OrphanedUpload]) async throws(UploadError) in
      found += page.filter { $0.name == key }
    }
    return found
  }

  /// Calls `take` with the objects of a folder, once for each page of the server's list. `take` may delete them. `endpoint`:
  /// any URL in the bucket. Does nothing if the server has no such list.
  package func objects(
    in folder: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([(url: HTTPURL, entry: S3Entry)]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    let url = bucket(at: endpoint).appending(pathBytes: folder)
    var cursor: S3Cursor?
    repeat {
      guard let page = try await page(of: url, after: cursor, with) else { return }
      try await take(page.entries.filter { !$0.isFolder }.map { (url.appending(pathBytes: $0.name.bytes), $0) })
      cursor = page.next
    } while cursor != nil
  }

  /// Deletes an unfinished upload. Succeeds if it is already gone.
  public func delete(_ orphan: OrphanedUpload, _ with: UploadContext) async throws(UploadError) {
    try await abort(S3Upload(object: orphan.url, id: orphan.id), with)
  }

  private func measure(_ orphan: inout OrphanedUpload, _ with: UploadContext) async throws(UploadError) {
    do throws(UploadError) {
      // Uses the URL as it is: after parsing it again, `.` and `..` in a name would lead to another place.
      let parts = try await parts(of: S3Upload(object: orphan.url, id: orphan.id), with)
      orphan.parts = parts.count
      orphan.bytes = parts.lazy.map(\.held).clampedSum
    } catch {
      // The upload is gone since it was listed, so it costs nothing.
      if !(error.cause is S3UploadIsGone) { throw error }
    }
  }

  static func key(_ text: String, _ isEncoded: Bool) -> [UInt8] {
    isEncoded
      ? PercentCoding.decoded(
        text.split(separator: "+", omittingEmptySubsequences: false).joined(separator: "%20").utf8)
      : Array(text.utf8)
  }

  /// Parses a time such as `2026-11-21T23:00:00.000Z` into seconds since 1970.
  static func seconds(_ text: String) -> Int64? {
    let digits = text.split { !$0.isNumber }.compactMap { Int64(digits: $0) }
    guard digits.count >= 6 else { return nil }
    return HTTPDate.seconds(
      year: digits[0], month: digits[1], day: digits[2], hour: digits[3], minute: digits[4], second: digits[5])
  }
}

extension String {
  var replacingSlashes: String {
    split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
  }
}
