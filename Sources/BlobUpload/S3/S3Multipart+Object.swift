import BlobCrypto
import BlobHTTP
import Blobs

/// An existing object, as described by HEAD.
struct S3Object: Sendable {
  var length: Int64?
  var tag: String?
  /// Checksums of the whole object, in base64.
  var checksums: [Digest.Algorithm: String]
  /// The ETag is not a digest of the bytes.
  var isEncrypted: Bool

  init(_ headers: HTTPHeaders) {
    length = headers.bytes("Content-Length")
    tag = headers["ETag"]
    // A checksum of the parts' checksums ends in the number of parts.
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

extension S3Multipart {
  /// nil: there is no object with this name, or the access key may not see it.
  func find(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> S3Object? {
    let request = Self.head(url)
    let response = try await send(request, nil, with)
    if response.isSuccess { return S3Object(response.headers) }
    if [403, 404, 410].contains(response.status) { return nil }
    throw UploadError(request, response, s3: S3ErrorResponse(response), signer)
  }

  /// Accepts an existing object if it has the same bytes. The source is read once for a digest.
  func claim(_ there: S3Object, _ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    func taken(_ how: String) -> UploadError {
      UploadError(.giveUp, .file, "\(url): \(how)", status: 412)
    }
    guard let whole = with.whole, let length = whole.length, whole.canBeReadTwice else {
      throw taken("there is an object of that name, and a source that is read once cannot be compared with it")
    }
    if let theirs = there.length, theirs != length {
      throw taken("there is an object of that name, of \(theirs) bytes and not \(length)")
    }
    switch try await isSame(there, as: whole, length, with) {
    case true?: return UploadResult(location: url.description, state: Self.state(there.tag), isCompared: true)
    case false?: break
    case nil:
      throw taken("there is an object of that name and length, and the server does not tell a digest of its bytes")
    }
    do throws(UploadError) {
      try await readBack(whole, at: url, with)
    } catch {
      if error.isDifference { throw taken("there is an object of that name with other bytes (\(error.message))") }
      guard let status = error.status, error.recovery == .giveUp else { throw error }
      throw taken(
        "there is an object of that name and length. The server tells a digest of other bytes, and answers \(status) when "
          + "the object is read to compare it")
    }
    return UploadResult(location: url.description, state: Self.state(there.tag), isCompared: true)
  }

  /// Compares with a checksum of the whole that the server reports, or with its ETag. Some servers report a wrong
  /// checksum for a multipart object, so a difference makes this read the object back.
  public func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    guard whole.canBeReadTwice, let there = try await find(target.url, with) else { return nil }
    if let length = whole.length, let theirs = there.length, length != theirs { return false }
    guard let isSame = try await isSame(there, as: whole, whole.length, with) else { return nil }
    if isSame { return true }
    do throws(UploadError) {
      try await readBack(whole, at: target.url, with)
      return true
    } catch {
      // If the object may not be read, the reported digests decide.
      if error.recovery == .giveUp, error.isDifference || error.status != nil { return false }
      throw error
    }
  }

  /// Compares `whole` with the digests that the server reports: true if one of them agrees; false if none agrees, which
  /// is no proof of a difference; nil: no digest can be compared.
  private func isSame(
    _ there: S3Object, as whole: BlobSlice, _ length: Int64?, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    var isTold = false
    for (algorithm, value) in known(of: there) {
      isTold = true
      if try await digests(of: whole, [algorithm], noteRead: with.server.compared)[0] == value { return true }
    }
    if let length, !there.isEncrypted, let tag = there.tag?.unquoted,
      let ours = try await multipartTag(of: whole, length, inPartsAs: tag, with)
    {
      isTold = true
      if ours == tag { return true }
    }
    return isTold ? false : nil
  }

  /// The ETag of `whole` after an upload with this program's part sizes; nil: `tag` has another number of parts.
  private func multipartTag(
    of whole: BlobSlice, _ length: Int64, inPartsAs tag: String, _ with: UploadContext
  ) async throws(UploadError) -> String? {
    guard let md5 = Digest.Algorithm("md5"), let hyphen = tag.lastIndex(of: "-"),
      let count = Int(tag[tag.index(after: hyphen)...]),
      let parts = PartPlan(length: length, wanted: options.partSize, limits: limits).numbered(), parts.count == count
    else { return nil }
    var receipts: [PartReceipt] = []
    for part in parts {
      let slice = BlobSlice(whole.source, start: part.start, length: part.length, validator: whole.validator)
      let value = try await digests(of: slice, [md5], noteRead: with.server.compared)[0]
      receipts.append(
        PartReceipt(
          number: part.number, start: part.start, held: part.length ?? 0, state: ["etag": Digest.hex(value)]))
    }
    return Self.tag(of: receipts)
  }

  /// Reads the object back. Throws an error with `isDifference` if it has other bytes.
  private func readBack(_ whole: BlobSlice, at url: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    try await with.compare(whole, with: url)
  }

  /// Digests of the whole object that the server reports, the cheapest to compute first.
  private func known(of there: S3Object) -> [(Digest.Algorithm, [UInt8])] {
    var known: [(Digest.Algorithm, [UInt8])] = []
    for algorithm in Digest.Algorithm.s3 {
      if let text = there.checksums[algorithm], let value = bytes(base64: text), value.count == algorithm.size {
        known.append((algorithm, value))
      }
    }
    // The ETag of a multipart upload contains a hyphen.
    if !there.isEncrypted, let tag = there.tag?.unquoted, tag.utf8.count == 32, let value = Self.hexBytes(tag),
      let md5 = Digest.Algorithm("md5")
    {
      known.append((md5, value))
    }
    return known
  }
}
