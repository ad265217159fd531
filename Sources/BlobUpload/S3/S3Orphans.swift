import BlobHTTP
import Blobs

/// A multipart upload that was begun and neither completed nor deleted: its parts are kept, and paid for.
public struct S3Orphan: Sendable {
  /// Percent-encoded below the bucket's URL.
  public let object: HTTPURL
  /// The object's name, as bytes.
  public let key: [UInt8]
  public let id: String
  /// Seconds since 1970; nil: not told.
  public let begun: Int64?
  public internal(set) var parts = 0
  /// Bytes of all its parts.
  public internal(set) var bytes: Int64 = 0
}

extension S3Multipart {
  /// So many uploads a page: their names may be long, and an answer is read up to 1 MiB.
  private static let page = 200
  /// Pages of a list, and uploads in it, at the most.
  private static let (mostPages, mostUploads) = (10_000, 2_000_000)

  /// Where a page of a list begins.
  private struct Marker: Hashable {
    var key: String
    var id: String
  }

  /// Calls `take` with unfinished uploads of objects whose names begin with `prefix`, and with what they hold: with those of
  /// one page of the server's list after the other, none of which is held longer. `take` may delete them. `endpoint`: any URL
  /// in the bucket. A list of more than 10,000 pages, or two million uploads, is an error.
  public func orphans(
    _ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([S3Orphan]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    var seen = 0
    var marker: Marker?
    // Hashes, since a server may make its markers as long as an answer.
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
      guard response.isSuccess else { throw UploadError(request, response, s3: S3Refusal(response), signer) }
      guard let list = XMLTree(response.body), list.name.hasPrefix("ListMultipartUploads") else {
        throw UploadError(
          .giveUp, .destination,
          "GET \(request.url): answered \(response.status) without a list of uploads, as S3 never does. Is the endpoint "
            + "right?", status: response.status)
      }
      let isEncoded = list.text("EncodingType") == "url"
      let uploads = list.all("Upload")
      // Ceph does as it was asked and does not say so; others do not know of it.
      if encoding != nil, !isEncoded, uploads.contains(where: { $0.text("Key")?.contains("%") == true }) {
        encoding = nil
        continue
      }
      var found: [S3Orphan] = []
      for upload in uploads {
        guard let key = upload.text("Key"), let id = upload.text("UploadId") else { continue }
        let bytes = Self.key(key, isEncoded)
        // Not every server heeds the prefix.
        guard bytes.starts(with: prefix) else { continue }
        var orphan = S3Orphan(
          object: bucket.appending(pathBytes: bytes), key: bytes, id: id,
          begun: upload.text("Initiated").flatMap(Self.seconds))
        try await measure(&orphan, with)
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
      // Not every server sorts its list, so that only a marker which comes a second time shows a circle.
      guard before.count < Self.mostPages, seen < Self.mostUploads, before.insert(after.hashValue).inserted else {
        throw UploadError(
          .giveUp, .destination,
          "GET \(request.url): the list of uploads does not end: seen after \(before.count) pages")
      }
      marker = after
    }
  }

  /// Deletes one. One that is gone already is a success.
  public func delete(_ orphan: S3Orphan, _ with: UploadContext) async throws(UploadError) {
    try await abort(S3Upload(object: orphan.object, id: orphan.id), with)
  }

  private func measure(_ orphan: inout S3Orphan, _ with: UploadContext) async throws(UploadError) {
    do throws(UploadError) {
      // By its URL as it is: parsed again, `.` and `..` in a name would lead to another place.
      let parts = try await parts(of: S3Upload(object: orphan.object, id: orphan.id), with)
      orphan.parts = parts.count
      orphan.bytes = parts.lazy.map(\.held).clampedSum
    } catch {
      // Gone since it was listed: there is nothing to pay for.
      if !(error.cause is S3UploadIsGone) { throw error }
    }
  }

  private static func key(_ text: String, _ isEncoded: Bool) -> [UInt8] {
    isEncoded
      ? PercentCoding.decoded(
        text.split(separator: "+", omittingEmptySubsequences: false).joined(separator: "%20").utf8)
      : Array(text.utf8)
  }

  /// `2026-11-21T23:00:00.000Z`
  static func seconds(_ text: String) -> Int64? {
    let digits = text.split { !$0.isNumber }.compactMap { Int64(digits: $0) }
    guard digits.count >= 6 else { return nil }
    return HTTPDate.seconds(
      year: digits[0], month: digits[1], day: digits[2], hour: digits[3], minute: digits[4], second: digits[5])
  }
}

extension String {
  fileprivate var replacingSlashes: String {
    split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
  }
}
