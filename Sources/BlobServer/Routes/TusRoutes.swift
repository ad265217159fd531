import BlobCrypto
import BlobHTTP

/// tus 1.0: core, creation, creation-with-upload, creation-defer-length, termination, expiration, checksum,
/// concatenation, concatenation-unfinished.
enum TusRoutes {
  /// Whether the request is a tus request. Both protocols use the same URLs for uploads. A client that omits the tus
  /// version, but uses the media type of tus or no sign of the other protocol, gets the error response of tus.
  static func isMeant(_ call: RoutedRequest) -> Bool {
    if call.headers["Tus-Resumable"] != nil || call.headers["Content-Type"]?.isSameField(Tus.contentType) == true {
      return true
    }
    return call.method == "PATCH" && call.headers["Upload-Draft-Interop-Version"] == nil
      && call.headers["Upload-Complete"] == nil && call.headers["Upload-Incomplete"] == nil
      && call.headers["Content-Type"]?.isSameField(IETF.contentType) != true
  }

  /// Whether a POST to another URL than an upload's is meant to create an upload of tus. Without `Tus-Resumable`, it gets
  /// the error response of tus.
  static func isCreation(_ call: RoutedRequest) -> Bool {
    ["Tus-Resumable", "Upload-Length", "Upload-Defer-Length", "Upload-Concat"].contains { call.headers[$0] != nil }
      || isMeant(call)
  }

  /// A request for an upload's URL.
  static func plan(_ call: RoutedRequest, _ name: String) throws(ServerError) -> Plan {
    if let refusal = versionRefusal(call) { return .reply(refusal) }
    if call.options.isReadOnly { throw ServerError(403, "the server is read-only", kind: .readOnly) }
    guard let id = UploadID(name) else { throw ServerError(404, "no such upload") }
    switch call.method {
    case "HEAD":
      return try UploadState.plan(call, id) { $0.record.awaitsEnd ? Reply(notTus) : answer($0, call.target) }
    case "PATCH": return try patch(call, id)
    case "DELETE":
      return call.service.onWorker { () throws(ServerError) in
        try call.service.uploads.terminate(id)
        return .reply(Reply(204))
      }
    default:
      return .reply(
        Reply(405, ["Allow": "HEAD, PATCH, DELETE, OPTIONS"], text: "an upload takes HEAD, PATCH and DELETE"))
    }
  }

  /// Returns 412 for a missing or unsupported version: the request must not be processed. tus 1.0 §Tus-Version.
  private static func versionRefusal(_ call: RoutedRequest) -> Reply? {
    if call.method == "GET" || call.headers["Tus-Resumable"] == Tus.version { return nil }
    return Reply(
      412, ["Tus-Version": Tus.version, "Tus-Resumable": Tus.version], text: "Tus-Resumable must be \(Tus.version)")
  }

  /// A client of tus would take such an upload for finished once it has all its bytes, though it is not published.
  private static let notTus = ServerError(
    404, "this upload is not one of tus: it ends when its client says so by Upload-Complete")

  // MARK: HEAD

  private static func answer(_ state: UploadState, _ target: RequestTarget) -> Reply {
    var reply = Reply(200, ["Cache-Control": "no-store"])
    reply.headers["Upload-Offset"] = state.offset.map { String($0) }
    if let length = state.record.length {
      reply.headers["Upload-Length"] = String(length)
    } else if state.record.parts == nil {
      reply.headers["Upload-Defer-Length"] = "1"
    }
    if !state.record.metadata.isEmpty { reply.headers["Upload-Metadata"] = state.record.metadata }
    reply.headers["Upload-Concat"] = state.record.concatenation?.text
    // The URL of the published file, for a client that checks whether it still exists.
    if state.isWhole, !state.record.isPart, !state.isWaiting {
      reply.headers["Content-Location"] = target.reference(to: state.record.target.url)
    }
    reply.headers["Upload-Expires"] = HTTPDate.text(state.expires)
    return reply
  }

  // MARK: PATCH

  private static func patch(_ call: RoutedRequest, _ id: UploadID) throws(ServerError) -> Plan {
    try checkContentType(call)
    guard let offset = try Tus.number(call.headers, "Upload-Offset") else {
      throw ServerError(400, "PATCH needs Upload-Offset")
    }
    let length = try Tus.number(call.headers, "Upload-Length")
    switch try call.service.uploads.find(id) {
    case .finished(let saved):
      try refuseOthers(saved.record)
      guard offset == saved.offset, call.request.contentLength == 0 else {
        throw ServerError(409, "the upload is finished at byte \(saved.offset)")
      }
      try BodyDigests.ofTus(call.headers)?.checkEmpty(0)
      let reply = progress(204, offset, saved.expires)
      if saved.record.isPart { return .reply(reply) }
      return try LateDigests.plan(call, saved) { error in error.map { Reply($0) } ?? reply }
    case .unfinished(let upload):
      try refuseOthers(upload.record)
      let digests = try BodyDigests.ofTus(call.headers)
      try digests?.checkEmpty(call.request.contentLength)
      let isNewLength = length != nil && length != upload.record.length
      let promised = upload.record.isPart ? nil : try BodyDigests.values(of: .representation, call.headers)
      let group = upload.record.isPart ? nil : try UploadGroup.of(call)
      @Sendable func receive() throws(ServerError) -> Plan {
        if let group, group != upload.record.group { try upload.join(group) }
        if let length, isNewLength { try checkNewLength(length, call, upload) }
        let end = call.request.contentLength.map { offset.addingClamped($0) }
        // These are stored before the upload has its length and all its bytes, because it may be published from then
        // on.
        if let promised, end == length ?? upload.record.length, offset == upload.offset { try upload.promise(promised) }
        if let length { try upload.setLength(length) }
        return try Self.receive(call, upload, offset, digests, promised: end == nil ? promised : nil)
      }
      @Sendable func receiveUnlessPublished() throws(ServerError) -> Plan {
        try upload.unlessPublished(
          receive, again: { () throws(ServerError) in try patch(call, id) }, failed: { Reply($0) })
      }
      let changesRecord = promised != nil || isNewLength || group ?? upload.record.group != upload.record.group
      return changesRecord ? call.service.onWorker(receiveUnlessPublished) : try receiveUnlessPublished()
    }
  }

  private static func checkNewLength(_ length: Int64, _ call: RoutedRequest, _ upload: Upload) throws(ServerError) {
    try checkLength(length, call.options)
    let record = upload.record
    if record.length != nil || record.isPart { return }
    var state = try call.service.store.target(at: record.target, in: record.target.parent)
    // The folder was checked when the upload was created, and is checked again when it is published.
    state.refusal = nil
    try record.existing.admit(state, at: record.target, length: length)
  }

  private static func refuseOthers(_ record: UploadRecord) throws(ServerError) {
    if record.awaitsEnd { throw notTus }
    if record.parts != nil { throw ServerError(403, "a final upload has no bytes but those of its parts") }
  }

  /// `promised`: digests of the whole file, which apply if the body completes the upload.
  private static func receive(
    _ call: RoutedRequest, _ upload: Upload, _ offset: Int64, _ digests: BodyDigests?,
    promised: [Digest.Algorithm: [UInt8]]?
  ) throws(ServerError) -> Plan {
    if let coming = call.request.contentLength {
      let (end, overflow) = offset.addingReportingOverflow(coming)
      if let length = upload.record.length, overflow || end > length {
        throw ServerError(413, "the upload has \(length) bytes; \(coming) more at byte \(offset) go past its end")
      }
      try checkLength(overflow ? .max : end, call.options)
    }
    let writer = try upload.write(
      from: offset, bringing: call.request.contentLength, by: call.sender,
      onProbation: digests != nil || promised != nil)
    return .receive(TusReceiver(writer, digests, promised: promised, call))
  }

  static func checkContentType(_ call: RoutedRequest) throws(ServerError) {
    let type = call.headers["Content-Type"] ?? ""
    if !type.isSameField(Tus.contentType) {
      throw ServerError(415, "Content-Type must be \(Tus.contentType), not '\(type.prefix(100))'")
    }
  }

  static func checkLength(_ length: Int64, _ options: ServerOptions) throws(ServerError) {
    if let limit = options.maxSize, length > limit {
      throw ServerError(413, "an upload may have \(limit) bytes at most, not \(length)", kind: .tooLarge)
    }
  }

  static func progress(_ status: Int, _ offset: Int64, _ expires: Int64) -> Reply {
    var reply = Reply(status, ["Upload-Offset": String(offset)])
    reply.headers["Upload-Expires"] = HTTPDate.text(expires)
    return reply
  }

  // MARK: POST

  /// Creates an upload below `folder`. The metadata names its target.
  static func create(_ call: RoutedRequest, _ folder: ServedPath) throws(ServerError) -> Plan {
    if let refusal = versionRefusal(call) { return .reply(refusal) }
    let role = call.headers["Upload-Concat"]
    if let role, role != "partial" { return try TusConcatenation.create(call, folder, role) }
    let creation = try TusCreation(call, folder, isPart: role != nil)
    let isWhole = creation.length != nil && creation.length == call.request.contentLength
    let digests = try CreationDigests(
      call.headers, ofBody: BodyDigests.ofTus(call.headers, isWhole: isWhole))
    @Sendable func receiver() throws(ServerError) -> TusCreationReceiver {
      let upload = try creation.begin(call.service)
      if let promised = digests.promised { try upload.promise(promised) }
      let writer = try upload.write(from: 0, bringing: call.request.contentLength, by: call.sender)
      return TusCreationReceiver(upload, writer, digests.ofBody, call)
    }
    if creation.isPart || !isWhole {
      try call.service.uploads.checkUnfinished()
    }
    if call.request.contentLength == 0 {
      return call.service.onWorker { () throws(ServerError) in
        try receiver().end([:])
      }
    }
    try checkContentType(call)
    if let length = creation.length, let coming = call.request.contentLength, coming > length {
      throw ServerError(413, "Upload-Length is \(length), the body has \(coming) bytes")
    }
    return .receive(try receiver())
  }
}
