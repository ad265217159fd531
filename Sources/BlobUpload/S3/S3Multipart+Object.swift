import BlobHTTP
import Blobs

/// An object that is there, as HEAD tells of it.
struct S3Object: Sendable {
  var length: Int64?
  var tag: String?
  /// Of the whole, in base64.
  var checksums: [Digest.Algorithm: String]
  /// Its ETag is no digest of its bytes.
  var isEncrypted: Bool

  init(_ headers: HTTPHeaders) {
    length = headers.bytes("Content-Length")
    tag = headers["ETag"]
    // One over the parts' checksums ends in their number.
    let isComposite = headers["x-amz-checksum-type"] == "COMPOSITE"
    checksums = [:]
    for algorithm in Digest.Algorithm.s3 {
      if let value = headers[algorithm.s3Field], !isComposite, !value.contains("-") { checksums[algorithm] = value }
    }
    isEncrypted =
      headers["x-amz-server-side-encryption"].map { $0 != "AES256" } ?? false
      || headers["x-amz-server-side-encryption-customer-algorithm"] != nil
  }
}

extension S3Multipart: DigestingProtocol {
  /// nil: there is nothing under the name, or whoever asks may not know.
  func find(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> S3Object? {
    let request = Self.head(url)
    let response = try await send(request, nil, with)
    if response.isSuccess { return S3Object(response.headers) }
    if [403, 404, 410].contains(response.status) { return nil }
    throw UploadError(request, response, s3: S3Refusal(response), signer)
  }

  /// What is there counts as ours if it has the same bytes: then its source is read for a digest, once.
  func claim(_ there: S3Object, _ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    func taken(_ how: String) -> UploadError {
      UploadError(.giveUp, .file, "\(url): \(how)", status: 412)
    }
    guard let whole = with.whole, let length = whole.length, whole.canBeReadTwice else {
      throw taken("there is an object of that name")
    }
    if let theirs = there.length, theirs != length {
      throw taken("there is an object of that name, of \(theirs) bytes and not \(length)")
    }
    guard let (algorithm, value) = known(of: there) else {
      throw taken("there is an object of that name and length, and the server does not tell a digest of its bytes")
    }
    let ours = try await digests(of: whole, [algorithm])[0]
    if value == ours {
      return UploadResult(location: url.description, state: Self.state(there.tag), isCompared: true)
    }
    throw taken("there is an object of that name with other bytes")
  }

  /// By a checksum of the whole that the server tells, or its ETag where that is an MD5.
  func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    guard whole.canBeReadTwice, let there = try await find(target.url, with), let (algorithm, value) = known(of: there)
    else { return nil }
    return try await digests(of: whole, [algorithm], noteRead: with.compared)[0] == value
  }

  private func known(of there: S3Object) -> (Digest.Algorithm, [UInt8])? {
    for algorithm in Digest.Algorithm.s3 {
      if let text = there.checksums[algorithm], let value = bytes(base64: text), value.count == algorithm.size {
        return (algorithm, value)
      }
    }
    // That of a multipart upload has a hyphen in it.
    guard !there.isEncrypted, let tag = there.tag?.unquoted, tag.utf8.count == 32, let value = Self.hexBytes(tag),
      let md5 = Digest.Algorithm("md5")
    else { return nil }
    return (md5, value)
  }
}
