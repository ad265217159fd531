import BlobCrypto
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

extension S3Multipart {
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

  /// By a checksum of the whole that the server tells, or its ETag. Some servers tell a wrong checksum for an object of
  /// several parts, so that one which contradicts makes us read the object back.
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
      // What nobody may read is judged by the digests that the server tells.
      if error.recovery == .giveUp, error.isDifference || error.status != nil { return false }
      throw error
    }
  }

  /// Whether the object has the bytes of `whole`, by what the server tells of it: true if one of its digests agrees, false
  /// if there are digests and none agrees, which is no proof; nil: there is none that can be compared.
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

  /// The ETag that `whole` has after an upload in parts as they are cut here; nil: `tag` is not of as many parts.
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

  /// Reads the object back, and throws `isDifference` where it has other bytes.
  private func readBack(_ whole: BlobSlice, at url: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    try await with.compare(whole, with: url)
  }

  /// Digests of the whole that the server tells, those first that are computed with the least work.
  private func known(of there: S3Object) -> [(Digest.Algorithm, [UInt8])] {
    var known: [(Digest.Algorithm, [UInt8])] = []
    for algorithm in Digest.Algorithm.s3 {
      if let text = there.checksums[algorithm], let value = bytes(base64: text), value.count == algorithm.size {
        known.append((algorithm, value))
      }
    }
    // That of a multipart upload has a hyphen in it.
    if !there.isEncrypted, let tag = there.tag?.unquoted, tag.utf8.count == 32, let value = Self.hexBytes(tag),
      let md5 = Digest.Algorithm("md5")
    {
      known.append((md5, value))
    }
    return known
  }
}
