import BlobCrypto
import BlobHTTP
import Blobs

/// Creates uploads: PUT and POST that state whether they complete the upload.
enum IETFCreation {
  /// A body that completes the upload and has at most this many bytes gets a record only if its connection breaks.
  private static let small: Int64 = 4 << 20

  /// Returns nil if the request is not a resumable upload.
  static func plan(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan? {
    if call.headers["Tus-Resumable"] != nil { return nil }
    guard let ietf = IETF(call.headers), let isLast = ietf.isLast(call.headers) else { return nil }
    do throws(ServerError) {
      if isLast { try PartialBody.refuse(call.headers) } else { try PartialBody.refuseOffset(call.headers) }
      return try plan(call, path, isFolder: isFolder, ietf, isLast: isLast)
    } catch {
      throw ietf.limited(error, call.options)
    }
  }

  private static func plan(
    _ call: RoutedRequest, _ path: ServedPath, isFolder: Bool, _ ietf: IETF, isLast: Bool
  ) throws(ServerError) -> Plan {
    guard case .some(let length) = IETFLength(call, from: 0, isLast: isLast) else {
      return .reply(IETFRoutes.inconsistent(ietf))
    }
    if let length { try TusRoutes.checkLength(length, call.options) }
    let store = call.service.store
    let target = try PutRoutes.target(call, path, isFolder: isFolder)
    let state = try store.target(at: target, in: path)
    let existing = try target == nil ? .keep : PutRoutes.rule(call, state.item).bound(to: state.item)
    try existing.admit(state, at: target ?? path, length: length)
    let digests = try CreationDigests(
      call.headers, ofBody: BodyDigests.ofHTTP(call.headers, isWhole: isLast))
    let comesWhole = isLast && call.request.contentLength != nil
    if !comesWhole { try call.service.uploads.checkUnfinished() }
    let modified = ModificationTime(call.headers)
    let group = try UploadGroup.of(call)
    @Sendable func begin() throws(ServerError) -> Upload {
      let upload = try call.service.uploads.begin(
        target, in: path, existing, length: length, modified: modified,
        awaitsEnd: !isLast || digests.ofBody?.isNeeded == true, group: group)
      if let promised = digests.promised { try upload.promise(promised) }
      return upload
    }
    if comesWhole, length ?? .max <= small {
      return try receive(call, try begin(), ietf, digests.ofBody, isLast: true)
    }
    return call.service.onWorker { () throws(ServerError) in
      do throws(ServerError) {
        let upload = try begin()
        do throws(ServerError) { try upload.save() } catch {
          // A body that arrives completely needs no record unless its connection breaks.
          if !comesWhole || !error.isLackOfUploads { throw error }
        }
        return try receive(call, upload, ietf, digests.ofBody, isLast: isLast)
      } catch {
        throw ietf.limited(error, call.options)
      }
    }
  }

  private static func receive(
    _ call: RoutedRequest, _ upload: Upload, _ ietf: IETF, _ digests: BodyDigests?, isLast: Bool
  ) throws(ServerError) -> Plan {
    // The client may resume as soon as it knows the URL: then its newer request takes over from this one.
    let writer = try upload.write(
      from: 0, bringing: call.request.contentLength, by: call.sender, onProbation: digests?.isNeeded == true,
      isLast: isLast)
    upload.register()
    let location = upload.id.location(from: call.target)
    let interim = ietf.interim(location, limit: ietf.limit(call.options.maxSize, expires: upload.expires))
    let isKnown = upload.canBeFound && call.request.inform(interim)
    return .receive(IETFReceiver(writer, ietf, digests, isLast: isLast, isCreation: true, isKnown: isKnown, call))
  }
}

/// Receives the body of a creation or of an append. All bytes received are kept, even if the connection breaks.
final class IETFReceiver: BodyReceiver {
  private let writer: UploadWriter
  private let ietf: IETF
  private let digests: BodyDigests?
  private let isLast: Bool
  private let isCreation: Bool
  /// The client knows the upload's URL, so it can resume.
  private let isKnown: Bool
  private let service: Service
  private let head: HTTPHeaders
  private let target: RequestTarget
  private let teller: InterimProgress?

  init(
    _ writer: UploadWriter, _ ietf: IETF, _ digests: BodyDigests?, isLast: Bool, isCreation: Bool = false,
    isKnown: Bool = true, _ call: RoutedRequest
  ) {
    self.writer = writer
    self.ietf = ietf
    self.digests = digests
    self.isLast = isLast
    self.isCreation = isCreation
    self.isKnown = isKnown
    service = call.service
    head = call.headers
    target = call.target
    // A client that sends without a length may have no copy of the bytes that are in transit, so it gets progress
    // reports. A proxy could take the first of them for the final response, and the client can do without them.
    // On a worker, nothing may be sent during the body.
    let isRelayed = call.service.relays != nil
    let listens =
      !isRelayed && call.request.contentLength == nil && digests?.isNeeded != true && call.request.asksForInterim
    teller = listens ? InterimProgress(to: call.request, ietf) : nil
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    digests?.take(piece)
    do throws(ServerError) {
      try writer.append(piece)
    } catch {
      guard error.isPastLength else { throw ietf.limited(error, service.options) }
      writer.upload.invalidate()
      throw ietf.pastLength(error.message + "; the upload has ended")
    }
    teller?.came(piece.count) { writer.upload.offset }
  }
  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    let upload = writer.upload
    return service.onWorker { [self] () throws(ServerError) in
      let isNewest: Bool
      do throws(ServerError) {
        isNewest = try take(trailers)
      } catch {
        let goesOn = writer.takeBack(after: error, isCreation: isCreation)
        return .reply(ietf.refusal(error, offset: goesOn ? upload.offset : nil))
      }
      if !isLast {
        try upload.save()
        return .reply(taken(upload))
      }
      guard upload.isComplete else { return .reply(IETFRoutes.inconsistent(ietf)) }
      let values = isCreation && isNewest ? digests?.values : nil
      return .later { [self] decided in
        upload.publish { result in decided(.reply(self.answer(upload, result, values))) }
      }
    }
  }

  /// Accepts the bytes. The digest of the whole file may arrive with the request that creates the upload, or with the
  /// one that completes it. Returns and throws as `UploadWriter.end` does, and throws if the bytes do not match a
  /// digest.
  private func take(_ trailers: HTTPHeaders) throws(ServerError) -> Bool {
    let promises = isCreation || isLast
    try BodyDigests.checkAnnounced(trailers, by: head, promises ? [.content, .representation] : [.content])
    try digests?.check(trailers)
    // For a body that is the whole file, `check` has just verified this digest.
    let late = promises && !(isCreation && isLast) ? try BodyDigests.values(of: .representation, trailers) : nil
    return try writer.end(
      isLast: isLast, promised: [late], isAsPromised: digests?.hasCheckedRepresentation == true)
  }

  private func taken(_ upload: Upload) -> Reply {
    var reply = ietf.answer(isCreation ? 201 : 204, isWhole: false, offset: upload.offset)
    if isCreation { reply.headers["Location"] = upload.id.location(from: target) }
    reply.headers["Upload-Limit"] = ietf.limit(service.options.maxSize, expires: upload.expires)
    return reply
  }

  /// `values`: digests of the whole file that were computed during this request.
  private func answer(
    _ upload: Upload, _ result: Result<Publication?, ServerError>, _ values: [Digest.Algorithm: [UInt8]]?
  ) -> Reply {
    switch result {
    case .success(nil):
      // The file is not stored under its name yet. RFC 9110 §15.3.3. The upload's URL tells how it goes on.
      var reply = ietf.answer(
        202, isWhole: true, offset: upload.offset, ["Location": upload.id.location(from: target)])
      reply.tell(nil)
      return reply
    case .success(let publication?):
      var reply = ietf.answer(
        publication.outcome == .created ? 201 : 200, isWhole: true, offset: upload.offset,
        ["Location": target.reference(to: upload.record.target.url)])
      reply.headers["ETag"] = publication.etag
      reply.tell(publication)
      if publication.hasModificationTime { reply.headers[ModificationTime.field] = "accepted" }
      reply.headers["Repr-Digest"] =
        service.digestReader.known.remember(values, of: publication.item) ?? upload.record.digest
      return reply
    case .failure(let error): return ietf.failed(error)
    }
  }

  func cut() {
    service.workers.submit { [self] in
      let upload = writer.upload
      if upload.deleteInvalid() { return }
      // If the client does not know the upload's URL, or the record cannot be saved, nobody can resume it: then it is
      // deleted.
      if !isKnown || (try? upload.save()) == nil { return writer.terminate() }
      if isLast, upload.isComplete, writer.isNewest { upload.publish { _ in } }
    }
  }
}
