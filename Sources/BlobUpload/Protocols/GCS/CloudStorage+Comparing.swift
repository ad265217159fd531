import BlobCrypto
import BlobHTTP
import Blobs

extension CloudStorage {
  /// Compares the object in a response with the bytes that were sent. If it has other bytes and `request` created it,
  /// this version of the object is deleted. A version that an earlier request created may match the source at that
  /// time.
  func finished(
    _ response: HTTPResponse, to request: HTTPRequest, _ object: CloudObject, isNew: Bool, overwrites: Bool,
    _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    var facts = CloudFacts(response.body)
    let isTold = facts.size != nil
    if !isTold { facts = try await self.facts(of: object, insteadOf: response, to: request, with) }
    var result = UploadResult(location: object.url.text, state: facts.version, length: facts.size)
    guard let whole = with.whole, whole.canBeReadTwice else { return result }
    guard let isSame = try await has(facts, sameBytesAs: whole, with) else { return result }
    if isSame {
      result.isCompared = true
      return result
    }
    if !isTold {
      throw UploadError(
        .giveUp, .file,
        "\(request.method) \(request.url): answered \(response.status) without the size of an object, and an object with "
          + "other bytes has that name")
    }
    if !isNew {
      throw UploadError(
        .restart, .file,
        "\(request.method) \(request.url): the upload was finished before, with other bytes than the file has now")
    }
    let problem = "\(request.method) \(request.url): the server has other bytes than were sent, by their checksum"
    guard let generation = facts.generation else {
      throw UploadError(.giveUp, .file, "\(problem), and tells no generation by which they could be deleted")
    }
    let response = try await with.send(HTTPRequest("DELETE", object.objectURL.withQuery("generation=\(generation)")))
    guard response.saysDeleted else {
      throw UploadError(
        .giveUp, .file, "\(problem), and does not delete them (\(response.summary)): \(object.url) is not this file")
    }
    // A bucket that keeps versions has it still; this account may not see whether it does.
    let lost = overwrites ? ", and what had that name before is gone, unless the bucket keeps versions" : ""
    throw UploadError(.restart, .file, "\(problem); they are deleted\(lost)")
  }

  /// Called if the name is taken. Success if the object has the same bytes.
  func claim(_ object: CloudObject, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    let facts: CloudFacts?
    do throws(UploadError) { facts = try await self.facts(of: object, with) } catch {
      if error.status != 403 { throw error }
      throw UploadError(
        .giveUp, .file,
        "\(object.url): the name is taken, and this account may not see whether by the same bytes (403)", status: 412)
    }
    func refuse(_ what: String) -> UploadError { UploadError(.giveUp, .file, "\(object.url): \(what)", status: 412) }
    // It may be the object of this very upload, where the answer to its last bytes was lost.
    guard let whole = with.whole, whole.canBeReadTwice else {
      throw refuse(
        "an object has that name; it was not compared with this one, since a pipe cannot be read again, and may be the same"
      )
    }
    guard let facts else { throw refuse("an object had that name, and is gone by now") }
    guard let isSame = try await has(facts, sameBytesAs: whole, with) else {
      throw refuse(
        "an object has that name, and the server tells no checksum by which it could be compared with this one")
    }
    if isSame {
      return UploadResult(location: object.url.text, state: facts.version, length: facts.size, isCompared: true)
    }
    throw refuse("another object has that name")
  }

  /// nil: there is no such object.
  private func facts(of object: CloudObject, _ with: UploadContext) async throws(UploadError) -> CloudFacts? {
    let request = HTTPRequest("GET", object.objectURL)
    let response = try await with.send(request)
    if response.status == 404 { return nil }
    guard response.status == 200 else { throw UploadError(request, response) }
    return CloudFacts(response.body)
  }

  /// Asks the server for the object, because `response` does not contain its size. A missing size in one response
  /// concerns one file, because the response may have been cut. A server that never returns a size is not Google Cloud
  /// Storage.
  private func facts(
    of object: CloudObject, insteadOf response: HTTPResponse, to request: HTTPRequest, _ with: UploadContext
  ) async throws(UploadError) -> CloudFacts {
    let problem = "\(request.method) \(request.url): answered \(response.status) without the size of an object"
    let facts: CloudFacts?
    do throws(UploadError) { facts = try await self.facts(of: object, with) } catch {
      if error.status != 403 { throw error }
      throw UploadError(.giveUp, .file, "\(problem), and this account may not see what it has stored (403)")
    }
    guard let facts else { throw UploadError(.giveUp, .file, "\(problem), and there is no object of that name") }
    if facts.size == nil {
      throw UploadError(
        .giveUp, .destination, "\(problem), also when asked for it: is this Google Cloud Storage?",
        status: response.status)
    }
    return facts
  }

  /// nil: the server tells no digest. Composite objects have a CRC32C alone.
  private func has(
    _ facts: CloudFacts, sameBytesAs whole: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    if let size = facts.size, let length = whole.length, size != length { return false }
    let expected: (String, Digest.Algorithm)
    if let crc32c = facts.crc32c {
      expected = (crc32c, .crc32c)
    } else if let md5 = facts.md5 {
      expected = (md5, .md5)
    } else {
      return nil
    }
    return base64(try await digests(of: whole, [expected.1], noteRead: with.server.compared)[0]) == expected.0
  }

  public func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    guard whole.canBeReadTwice, let facts = try await facts(of: try CloudObject(target), with) else { return nil }
    return try await has(facts, sameBytesAs: whole, with)
  }

  public func remoteFile(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> RemoteFile? {
    try await facts(of: try CloudObject(target), with).map { RemoteFile(length: $0.size, version: $0.generation) }
  }

  public func isThere(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    guard let facts = try await facts(of: try CloudObject(target), with) else { return false }
    // Each write to a name creates a new generation number.
    if let stored = location?.split(separator: "#").dropFirst().first, let generation = facts.generation,
      stored != generation
    {
      return false
    }
    return target.length == nil || facts.size == target.length
  }

  public func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    try CloudObject(target).objectURL.withQuery("alt=media")
  }
}
