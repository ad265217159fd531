import BlobHTTP
import Blobs

/// Resumable uploads for HTTP: creation at any path below the folder, then HEAD, PATCH and DELETE of the upload's URL.
enum IETFRoutes {
  /// A request for an upload's URL.
  static func plan(_ call: RoutedRequest, _ name: String) throws(ServerError) -> Plan {
    if call.options.isReadOnly { throw ServerError(403, "the server is read-only", kind: .readOnly) }
    guard let id = UploadID(name) else { throw ServerError(404, "no such upload") }
    guard let ietf = IETF(call.headers) else {
      throw ServerError(400, "this Upload-Draft-Interop-Version is not spoken; 3 to 8 are")
    }
    switch call.method {
    case "HEAD", "GET":
      if call.method == "HEAD", ietf.tellsState(call.headers) {
        throw ServerError(400, "a HEAD of an upload must not have Upload-Offset or Upload-Complete")
      }
      return try ask(call, ietf, id)
    case "PATCH": return try append(call, ietf, id)
    case "DELETE":
      return call.service.onWorker { () throws(ServerError) in
        do throws(ServerError) {
          try call.service.uploads.terminate(id)
        } catch {
          throw error.status == 410 ? ServerError(404, error.message) : error
        }
        return .reply(Reply(204))
      }
    default:
      return .reply(
        Reply(405, ["Allow": "HEAD, PATCH, DELETE, OPTIONS"], text: "an upload takes HEAD, PATCH and DELETE"))
    }
  }

  private static func ask(_ call: RoutedRequest, _ ietf: IETF, _ id: UploadID) throws(ServerError) -> Plan {
    try UploadState.plan(call, id) { state in
      guard let offset = state.offset, state.record.concatenation == nil else { return Reply(notConcatenated) }
      var reply = ietf.answer(204, isWhole: state.isWhole, offset: offset, ["Cache-Control": "no-store"])
      reply.headers["Upload-Length"] = state.record.length.map { String($0) }
      reply.headers["Upload-Limit"] = ietf.limit(call.options.maxSize, expires: state.expires)
      return reply
    }
  }

  private static let notConcatenated = ServerError(404, "this upload is tus's alone: it is part of a concatenation")

  private static func append(_ call: RoutedRequest, _ ietf: IETF, _ id: UploadID) throws(ServerError) -> Plan {
    do throws(ServerError) {
      return try plan(append: call, ietf, id)
    } catch {
      throw ietf.limited(error, call.options)
    }
  }

  private static func plan(append call: RoutedRequest, _ ietf: IETF, _ id: UploadID) throws(ServerError) -> Plan {
    guard let isLast = ietf.isLast(call.headers) else {
      throw ServerError(400, "PATCH must say by Upload-Complete whether it brings the end: ?1 or ?0")
    }
    try ietf.checkContentType(call.headers)
    guard let offset = StructuredField.integer(call.headers.item("Upload-Offset")), offset >= 0 else {
      throw ServerError(400, "PATCH needs Upload-Offset, an integer")
    }
    switch try call.service.uploads.find(id) {
    case .finished(let saved):
      if saved.record.concatenation != nil { throw notConcatenated }
      guard isLast, offset == saved.offset, call.request.contentLength == 0 else {
        return .reply(ietf.problem(400, "completed-upload", "the upload is finished", offset: saved.offset))
      }
      try BodyDigests.ofHTTP(call.headers, isWhole: false)?.checkEmpty(0)
      return try LateDigests.plan(call, saved) { error in
        error.map { ietf.failed($0) } ?? ietf.answer(204, isWhole: true, offset: offset)
      }
    case .unfinished(let upload):
      if upload.record.concatenation != nil { throw notConcatenated }
      let here = try upload.takeOver()
      if offset != here { return .reply(mismatch(ietf, expected: here, provided: offset)) }
      let length: Int64?
      switch IETFLength(call, from: offset, isLast: isLast, known: upload.record.length) {
      case .inconsistent: return .reply(inconsistent(ietf))
      case .past(let length):
        upload.invalidate()
        return call.service.onWorker { () throws(ServerError) in
          upload.deleteInvalid()
          throw ietf.pastLength("the upload has \(length) bytes, and the request has more; the upload has ended")
        }
      case .some(let announced): length = announced
      }
      if let length { try TusRoutes.checkLength(length, call.options) }
      let digests = try BodyDigests.ofHTTP(call.headers, isWhole: false)
      do throws(ServerError) {
        try digests?.checkEmpty(call.request.contentLength)
      } catch {
        return .reply(ietf.refusal(error, offset: here))
      }
      let promised = isLast ? try BodyDigests.values(of: .representation, call.headers) : nil
      let group = try UploadGroup.of(call)
      @Sendable func receive() throws(ServerError) -> Plan {
        if let group, group != upload.record.group { try upload.join(group) }
        // These are stored before the upload has its length and all its bytes, because it may be published from then on.
        if let promised { try upload.promise(promised) }
        if let length { try upload.setLength(length) }
        let writer = try upload.write(
          from: offset, bringing: call.request.contentLength, by: call.sender, onProbation: digests?.isNeeded == true,
          isLast: isLast)
        return .receive(IETFReceiver(writer, ietf, digests, isLast: isLast, call))
      }
      @Sendable func receiveUnlessPublished() throws(ServerError) -> Plan {
        do throws(ServerError) {
          return try upload.unlessPublished(
            receive, again: { () throws(ServerError) in try append(call, ietf, id) }, failed: ietf.failed)
        } catch {
          throw ietf.limited(error, call.options)
        }
      }
      let record = upload.record
      let changesRecord =
        promised != nil || length ?? record.length != record.length || record.awaitsEnd == isLast
        || group ?? record.group != record.group
      return changesRecord ? call.service.onWorker(receiveUnlessPublished) : try receiveUnlessPublished()
    }
  }

  static func mismatch(_ ietf: IETF, expected: Int64, provided: Int64) -> Reply {
    ietf.problem(
      409, "mismatching-upload-offset", "the upload is at another byte",
      ["expected-offset": expected, "provided-offset": provided], offset: expected)
  }

  static func inconsistent(_ ietf: IETF) -> Reply {
    ietf.problem(400, "inconsistent-upload-length", "the length is not what was said before")
  }
}

/// What a request says about the length of the whole file: explicitly, by the end of its body, or nothing.
enum IETFLength {
  case some(Int64?)
  case inconsistent
  /// The body ends past this length, which was known before.
  case past(Int64)

  init(_ call: RoutedRequest, from offset: Int64, isLast: Bool, known: Int64? = nil) {
    let announced = StructuredField.integer(call.headers.item("Upload-Length")).flatMap { $0 < 0 ? nil : $0 }
    var lengths = [announced, known].compactMap { $0 }
    if let coming = call.request.contentLength {
      let (end, overflow) = offset.addingReportingOverflow(coming)
      if let known, overflow || end > known {
        self = .past(known)
        return
      }
      if overflow || lengths.contains(where: { end > $0 }) {
        self = .inconsistent
        return
      }
      if isLast { lengths.append(end) }
    }
    self = Set(lengths).count > 1 ? .inconsistent : .some(lengths.first)
  }
}
