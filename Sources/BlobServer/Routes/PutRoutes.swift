import BlobHTTP

/// `PUT`, and `POST` of a bare body: the body becomes the file with that name, completely or not at all. RFC 9110 §9.3.4.
enum PutRoutes {
  static func plan(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan {
    // Browsers and curl use this type where nobody has thought of one, and its bodies are rarely files.
    if call.method == "POST", call.headers["Content-Type"]?.isSameField("application/x-www-form-urlencoded") == true {
      throw ServerError(
        415, "POST takes a file's bytes with the file's own Content-Type, forms (multipart/form-data) and tus uploads")
    }
    guard let path = try target(call, path, isFolder: isFolder) else {
      throw ServerError(
        400, "\(path) names a folder; a file's name is needed, in the URL or as filename in Content-Disposition")
    }
    let length = call.request.contentLength
    let whole = try PartialBody.wholeLength(ofPut: call.headers)
    if let length, let whole { try PartialBody.check(length, isWhole: whole) }
    if let limit = call.options.maxSize, let length, length > limit {
      throw ServerError(413, "an upload may have \(limit) bytes at most, this one has \(length)", kind: .tooLarge)
    }
    let store = call.service.store
    let target = try store.target(at: path, in: path.parent)
    let rule = try rule(call, target.item).bound(to: target.item)
    try rule.admit(target, at: path, length: length)
    let digests = try BodyDigests.ofHTTP(call.headers, isWhole: true)
    let modified = ModificationTime(call.headers)
    if let group = try UploadGroup.of(call) {
      let upload = try call.service.uploads.begin(
        path, in: path.parent, rule, length: length, modified: modified, awaitsEnd: true, group: group)
      let writer = try upload.write(from: 0, bringing: length, by: call.sender)
      return .receive(GroupedPutReceiver(upload, writer, digests, whole: whole, call))
    }
    let reception = try store.begin(.random(), for: path, length: length, modified: modified)
    reception.expect(length)
    call.service.counters.uploads.begun.add(1)
    return .receive(PutReceiver(reception, path, rule, modified, digests, whole: whole, call))
  }

  /// The path itself, or for a POST to a folder, the file in it that `Content-Disposition` names; nil: it names none.
  /// Throws 409 if the URL of a folder ends without a slash in the name of the file: it is meant for the file itself, and
  /// would replace one in the folder that nobody has named.
  static func target(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> ServedPath? {
    let mayBeFile = !isFolder && !path.isRoot
    if call.method == "PUT" {
      if mayBeFile { return path }
      throw ServerError(409, "\(path) names a folder; a file's name is needed", kind: .nameTaken)
    }
    if mayBeFile, try !call.showsFolder(at: path) { return path }
    guard let name = ContentDisposition.fileName(call.headers["Content-Disposition"]) else { return nil }
    if mayBeFile, name == path.name.bytes { throw ServerError(409, "\(path) is a folder", kind: .nameTaken) }
    return try path.appending(name)
  }

  /// The rule for an existing file at the target of a PUT or POST. See the two below.
  static func rule(_ call: RoutedRequest, _ item: StoredItem?) throws(ServerError) -> ExistingRule {
    try call.method == "PUT" ? rule(call.headers, item) : rule(ofPost: call.headers, item)
  }

  /// The rule for an existing file at the target, derived from the request's preconditions. `item`: that file; nil:
  /// there is none. Throws 412 if a precondition is false. RFC 9110 §13.1.
  static func rule(_ headers: HTTPHeaders, _ item: StoredItem?) throws(ServerError) -> ExistingRule {
    if let item {
      try Preconditions.check(headers, item)
    } else if headers["If-Match"] != nil {
      throw ServerError(412, "If-Match asks for a file that is there, and there is none")
    }
    if EntityTags("If-None-Match", of: headers)?.isAny == true { return .mustBeNew }
    return replacement(headers, item) ?? .keep
  }

  /// Like `rule`, for a POST, whose URL may differ from the file's: `If-Match: *` permits replacing a file, but does
  /// not require that one exists.
  static func rule(ofPost headers: HTTPHeaders, _ item: StoredItem?) throws(ServerError) -> ExistingRule {
    if item == nil, headers["If-None-Match"] == nil, EntityTags("If-Match", of: headers)?.isAny == true {
      return .replace
    }
    return try rule(headers, item)
  }

  /// The rule from `If-Match`, which the caller has evaluated; nil if the request has no such field.
  private static func replacement(_ headers: HTTPHeaders, _ item: StoredItem?) -> ExistingRule? {
    guard let wanted = EntityTags("If-Match", of: headers), let item else { return nil }
    return wanted.isAny ? .replace : .replaceVersion(item.version)
  }
}

extension Reply {
  /// The reply to a PUT or POST whose file got its name. `location`: the file's URL, relative to the request's; nil: they are
  /// the same.
  init(_ publication: Publication, at location: String?, _ digests: BodyDigests?, _ service: Service) {
    self.init(publication.outcome == .created ? 201 : 204, publication.etag.map { ["ETag": $0] } ?? [:])
    headers["Location"] = location
    tell(publication)
    if publication.hasModificationTime { headers[ModificationTime.field] = "accepted" }
    headers["Repr-Digest"] = service.digestReader.known.remember(digests?.values, of: publication.item)
  }

  /// Adds a header field if a file with the same bytes was already there, or if the file has no name yet, since it waits
  /// for the other members of its group (nil).
  mutating func tell(_ publication: Publication?) {
    switch publication?.outcome {
    case .same: headers[UploadOutcomeField.name] = UploadOutcomeField.unchanged
    case nil: headers[UploadOutcomeField.name] = UploadOutcomeField.waiting
    case .created, .replaced: break
    }
    if let group = publication?.group { headers[UploadGroup.field] = group.text }
  }
}

private final class PutReceiver: BodyReceiver {
  private let reception: any Reception
  private let meter: UploadMeter
  private let record: UploadRecord
  private let digests: BodyDigests?
  /// The length of the whole file in bytes, if the request states it in addition to the length of its body.
  private let whole: Int64?
  /// The length of its body; nil: it is not known before its end.
  private let length: Int64?
  private let head: HTTPHeaders
  private let service: Service
  private let sender: Sender?
  /// The file's URL, relative to the request's; nil: they are the same.
  private let location: String?

  init(
    _ reception: any Reception, _ path: ServedPath, _ rule: ExistingRule, _ modified: ModificationTime?,
    _ digests: BodyDigests?, whole: Int64?, _ call: RoutedRequest
  ) {
    self.reception = reception
    self.digests = digests
    (self.whole, length) = (whole, call.request.contentLength)
    head = call.headers
    service = call.service
    sender = call.sender
    location = call.method == "POST" ? call.target.reference(to: path.url) : nil
    record = UploadRecord(reception.id, target: path, existing: rule, length: nil, modified: modified)
    meter = call.service.counters.uploads.active.begin(
      path, length: whole ?? call.request.contentLength, by: call.sender)
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    if let limit = service.options.maxSize, reception.length + Int64(piece.count) > limit {
      throw ServerError.tooLarge(limit)
    }
    digests?.take(piece)
    try reception.append(piece)
    meter.add(piece.count)
  }

  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    service.onWorker { [self] () throws(ServerError) in
      do throws(ServerError) {
        if let whole { try PartialBody.check(reception.length, isWhole: whole) }
        try BodyDigests.checkAnnounced(trailers, by: head, [.content, .representation])
        try digests?.check(trailers)
        let publication = try service.store.publish(reception, record, isSaved: false)
        service.received(ReceivedFile(record.target, publication, by: sender))
        return .reply(Reply(publication, at: location, digests, service))
      } catch {
        discard()
        throw error
      }
    }
  }

  func cut() { service.workers.submit { [self] in discard() } }

  private func discard() {
    service.counters.uploads.failed(at: record.target, received: reception.length, length: whole ?? length)
    reception.discard()
  }
}
