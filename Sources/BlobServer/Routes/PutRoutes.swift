import BlobHTTP

/// `PUT`: a body that becomes the file of that name, whole or not at all. RFC 9110 §9.3.4.
enum PutRoutes {
  static func plan(_ call: Call, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan {
    if path.isRoot || isFolder { throw ServerError(409, "\(path) names a folder; a file's name is needed") }
    if call.headers["Content-Range"] != nil {
      throw ServerError(400, "PUT takes whole files; Content-Range is for resumable uploads (tus)")
    }
    let length = call.request.contentLength
    if let limit = call.options.maxSize, let length, length > limit {
      throw ServerError(413, "an upload may have \(limit) bytes at most, this one has \(length)")
    }
    let store = call.service.store
    let target = try store.target(at: path, in: path.parent)
    let rule = try rule(call.headers, target.item)
    try rule.admit(target, at: path, length: length)
    let digests = try BodyDigests.ofHTTP(call.headers, isWhole: true)
    let reception = try store.begin(length: length)
    return .receive(PutReceiver(reception, path, rule, ModificationTime(call.headers), digests, call.service))
  }

  /// What the preconditions ask for. RFC 9110 §13.1.
  static func rule(_ headers: HTTPHeaders, _ item: StoredItem?) throws(ServerError) -> ExistingRule {
    if let none = headers["If-None-Match"] {
      if none == "*" { return .mustBeNew }
      if let item, headers.list("If-None-Match").contains(item.etag) { throw ServerError(412, "the file is there") }
    }
    guard let match = headers["If-Match"] else { return .keep }
    // `*` on a free name is let through, unlike §13.1.1: `push --overwrite` sends it with every file.
    if match == "*" { return .replace }
    guard let item, headers.list("If-Match").contains(item.etag) else {
      throw ServerError(412, "the file is not the version that If-Match names")
    }
    return .replaceVersion(etag: item.etag)
  }
}

extension Reply {
  /// Says where the bytes were there before.
  mutating func tell(_ publication: Publication) {
    if publication.outcome == .same { headers[UploadOutcomeField.name] = UploadOutcomeField.unchanged }
  }
}

private final class PutReceiver: BodyReceiver {
  private let reception: any Reception
  private let record: UploadRecord
  private let digests: BodyDigests?
  private let service: Service

  init(
    _ reception: any Reception, _ path: ServedPath, _ rule: ExistingRule, _ modified: ModificationTime?,
    _ digests: BodyDigests?, _ service: Service
  ) {
    self.reception = reception
    self.digests = digests
    self.service = service
    record = UploadRecord(reception.id, target: path, existing: rule, length: nil, modified: modified)
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    if let limit = service.options.maxSize, reception.length + Int64(piece.count) > limit {
      throw ServerError(413, "an upload may have \(limit) bytes at most")
    }
    digests?.take(piece)
    try reception.append(piece)
  }

  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    service.onWorker { [self] () throws(ServerError) in
      do throws(ServerError) {
        try BodyDigests.checkAnnounced(trailers, digests)
        try digests?.check(trailers)
        let publication = try service.store.publish(reception, record, isSaved: false)
        var reply = Reply(publication.outcome == .created ? 201 : 204, ["ETag": publication.item.etag])
        reply.tell(publication)
        if publication.hasModificationTime { reply.headers[ModificationTime.field] = "accepted" }
        reply.headers["Repr-Digest"] = service.digests.remember(digests?.values, of: publication.item)
        return .reply(reply)
      } catch {
        reception.discard()
        throw error
      }
    }
  }

  func cut() { service.workers.submit { [reception] in reception.discard() } }
}
