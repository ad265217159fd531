import BlobHTTP

/// Creates final uploads from partial ones. tus 1.0 §Concatenation.
enum TusConcatenation {
  /// `text`: the value of `Upload-Concat`, if that is not `partial`.
  static func create(_ call: RoutedRequest, _ folder: ServedPath, _ text: String) throws(ServerError) -> Plan {
    let joining = try call.service.store.required(\.joining, "join parts")
    let parts = try parts(call, text)
    if call.headers["Upload-Length"] != nil || call.headers["Upload-Defer-Length"] != nil {
      throw ServerError(400, "a final upload is as long as its parts: no Upload-Length, no Upload-Defer-Length")
    }
    if call.request.contentLength != 0 { throw ServerError(400, "a final upload has no bytes of its own") }
    try BodyDigests.ofTus(call.headers)?.check([:])
    let promised = try BodyDigests.values(of: .representation, call.headers)
    let target = try TusTarget(call, folder)
    return call.service.onWorker { () throws(ServerError) in
      if let plan = try again(call, joining, parts, target) { return plan }
      let length = try length(of: parts, in: folder, call)
      var target = target
      try target.admitFinal(length: length, in: folder, call.service)
      return publish(
        call,
        try call.service.uploads.begin(
          target.path, in: folder, target.existing, length: length, metadata: target.metadata,
          modified: target.modified, joining: parts, text: text, digest: promised.map { DigestField.text($0) },
          group: target.group, by: call.sender))
    }
  }

  /// The response to a repeated request, whose first response was lost; nil if the request is not a repetition.
  private static func again(
    _ call: RoutedRequest, _ joining: any PartJoining, _ parts: [UploadID], _ target: TusTarget
  ) throws(ServerError) -> Plan? {
    guard let final = joining.claimant(of: parts[0]) else { return nil }
    func isSame(_ record: UploadRecord) -> Bool {
      record.parts == parts && record.metadata == target.metadata && target.path ?? record.target == record.target
    }
    switch try call.service.uploads.find(final) {
    case .unfinished(let upload) where isSame(upload.record): return publish(call, upload)
    case .finished(let saved) where isSame(saved.record): return .reply(created(call, final, saved.expires))
    default: return nil
    }
  }

  private static func publish(_ call: RoutedRequest, _ upload: Upload) -> Plan {
    if !upload.isComplete { return .reply(created(call, upload.id, upload.expires)) }
    return .later { decided in
      upload.publish { result in
        switch result {
        case .success(let publication):
          var reply = created(call, upload.id, upload.expires)
          if publication == nil { reply.tell(publication) }
          decided(.reply(reply))
        case .failure(let error): decided(.refuse(error))
        }
      }
    }
  }

  private static func created(_ call: RoutedRequest, _ id: UploadID, _ expires: Int64) -> Reply {
    var reply = Reply(201, ["Location": id.location(from: call.target)])
    reply.headers["Upload-Expires"] = HTTPDate.text(expires)
    return reply
  }

  /// The length of all parts together; nil if a part's length is unknown. Throws 413 if the known lengths are too large
  /// in total.
  private static func length(
    of parts: [UploadID], in folder: ServedPath, _ call: RoutedRequest
  ) throws(ServerError) -> Int64? {
    var sum: Int64 = 0
    var isKnown = true
    for part in parts {
      let record: UploadRecord
      switch try call.service.uploads.find(part) {
      case .unfinished(let upload): record = upload.record
      case .finished(let saved): record = saved.record
      }
      if !record.isPart { throw ServerError(400, "the upload \(part) was not created with Upload-Concat: partial") }
      if record.target.parent != folder { throw ServerError(400, "the part \(part) was created in another folder") }
      guard let length = record.length else {
        isKnown = false
        continue
      }
      let (more, overflow) = sum.addingReportingOverflow(length)
      if overflow { throw ServerError(413, "the parts have more than \(Int64.max) bytes together") }
      sum = more
    }
    try TusRoutes.checkLength(sum, call.options)
    return isKnown ? sum : nil
  }

  /// Parses URLs of uploads on this server, absolute or relative to the request's URL. Behind a reverse proxy they may
  /// have another scheme and host, and a path prefix. So only the id identifies an upload; no other server has the same
  /// id.
  private static func parts(_ call: RoutedRequest, _ text: String) throws(ServerError) -> [UploadID] {
    guard let urls = Concatenation.urls(text) else {
      throw ServerError(400, "Upload-Concat must be 'partial', or 'final;' and the URLs of its parts")
    }
    let host = call.target.authority ?? call.headers["Host"] ?? "localhost"
    guard let base = HTTPURL("http://\(host)\(String(decoding: call.target.path, as: UTF8.self))") else {
      throw ServerError(400, "Host and the request's target make no URL")
    }
    let folder = "/\(ServedPath.uploadName)/"
    var parts: [UploadID] = []
    for url in urls {
      guard let place = base.resolve(String(url)) else { throw ServerError(400, "'\(url.prefix(200))' is no URL") }
      guard place.query == nil, let id = UploadID(place.path.suffix(UploadID.length)), url.hasSuffix(id.description),
        place.path.dropLast(UploadID.length).hasSuffix(folder)
      else { throw ServerError(400, "'\(url.prefix(200))' is no URL of an upload") }
      if parts.contains(id) { throw ServerError(400, "the part \(id) is named twice") }
      parts.append(id)
    }
    return parts
  }
}
