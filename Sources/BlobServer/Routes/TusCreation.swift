import BlobCrypto
import BlobHTTP
import Blobs

/// The parameters of a creation request, checked against the existing files.
struct TusCreation: Sendable {
  let length: Int64?
  /// The upload is part of a final upload: its bytes are stored but not published.
  let isPart: Bool
  private let folder: ServedPath
  private let target: TusTarget

  init(_ call: RoutedRequest, _ folder: ServedPath, isPart: Bool) throws(ServerError) {
    length = try Tus.number(call.headers, "Upload-Length")
    let isDeferred = call.headers["Upload-Defer-Length"]
    if let isDeferred, isDeferred != "1" { throw ServerError(400, "Upload-Defer-Length can only be 1") }
    if (length != nil) == (isDeferred != nil) {
      throw ServerError(400, "exactly one of Upload-Length and Upload-Defer-Length is needed")
    }
    if let length { try TusRoutes.checkLength(length, call.options) }
    self.folder = folder
    self.isPart = isPart
    var target = try TusTarget(call, folder)
    if isPart {
      _ = try call.service.store.required(\.joining, "join parts")
      try target.admitPart(in: folder, call.service)
    } else {
      try target.admit(length: length, in: folder, call.service)
    }
    self.target = target
  }

  /// Creates the upload. Until it is saved, it exists only for this request and in this process.
  func begin(_ service: Service) throws(ServerError) -> Upload {
    try service.uploads.begin(
      isPart ? nil : target.path, in: folder, target.existing, length: length, metadata: target.metadata,
      isPart ? .partial : nil, modified: target.modified, group: isPart ? nil : target.group)
  }
}

/// Receives the body of a creation. Its bytes need not be provisional, because there is no record yet. A small file
/// that arrives completely needs no record: if the connection breaks, the client does not know the upload's URL, so its
/// bytes are deleted. tus 1.0 §Creation With Upload.
final class TusCreationReceiver: BodyReceiver {
  private let upload: Upload
  private let writer: UploadWriter
  private let digests: BodyDigests?
  private let head: HTTPHeaders
  private let service: Service
  private let target: RequestTarget

  init(_ upload: Upload, _ writer: UploadWriter, _ digests: BodyDigests?, _ call: RoutedRequest) {
    self.upload = upload
    self.writer = writer
    self.digests = digests
    head = call.headers
    service = call.service
    target = call.target
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    digests?.take(piece)
    try writer.append(piece)
  }

  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    do throws(ServerError) {
      try BodyDigests.checkAnnounced(trailers, by: head, [.tus, .content, .representation])
      try digests?.check(trailers)
      try writer.end(
        promised: [BodyDigests.values(of: .representation, trailers)],
        isAsPromised: digests?.hasCheckedRepresentation == true)
    } catch {
      cut()
      return .refuse(error)
    }
    if upload.isComplete, !upload.record.isPart {
      return publish(upload) { [target] upload, error in
        guard let error else { return Self.created(upload, target) }
        try? upload.terminate()  // the client does not know its URL; already ended, unless the disk failed
        return Reply(error)
      }
    }
    return service.onWorker { [upload, target] () throws(ServerError) in
      do throws(ServerError) {
        try upload.save()
      } catch {
        try? upload.terminate()  // nothing of it was saved; the first error is reported
        throw error
      }
      return .reply(Self.created(upload, target))
    }
  }

  func cut() { service.workers.submit { [upload] in try? upload.terminate() } }  // published: nothing to undo

  private static func created(_ upload: Upload, _ target: RequestTarget) -> Reply {
    var reply = TusRoutes.progress(201, upload.offset, upload.expires)
    reply.headers["Location"] = upload.id.location(from: target)
    return reply
  }
}

/// Receives the body of a PATCH. All bytes received are kept, even if the connection breaks. With a checksum, either
/// all of them are kept or none.
final class TusReceiver: BodyReceiver {
  private let writer: UploadWriter
  private let digests: BodyDigests?
  /// Digests of the whole file from the header section, if it did not show whether the body completes the upload. They
  /// apply if it does.
  private let promised: [Digest.Algorithm: [UInt8]]?
  private let head: HTTPHeaders
  private let service: Service

  init(_ writer: UploadWriter, _ digests: BodyDigests?, promised: [Digest.Algorithm: [UInt8]]?, _ call: RoutedRequest) {
    self.writer = writer
    self.digests = digests
    self.promised = promised
    head = call.headers
    service = call.service
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    digests?.take(piece)
    try writer.append(piece)
  }

  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    // Saving the digests writes to disk, which blocks.
    if promised == nil, trailers.fields.isEmpty { return endNow(trailers) }
    return service.onWorker { [self] in endNow(trailers) }
  }

  private func endNow(_ trailers: HTTPHeaders) -> Plan {
    let upload = writer.upload
    do throws(ServerError) {
      let isEnd = upload.hasAllBytes && !upload.record.isPart
      try BodyDigests.checkAnnounced(
        trailers, by: head, isEnd ? [.tus, .content, .representation] : [.tus, .content])
      try digests?.check(trailers)
      let late = isEnd ? try BodyDigests.values(of: .representation, trailers) : nil
      try writer.end(promised: isEnd ? [promised, late] : [])
    } catch {
      return service.onWorker { [self] () throws(ServerError) in
        _ = writer.takeBack(after: error)
        return .refuse(error)
      }
    }
    if upload.record.isPart {
      upload.tellFinal()
    } else if upload.isComplete {
      return publish()
    }
    return .reply(TusRoutes.progress(204, upload.offset, upload.expires))
  }

  private func publish() -> Plan {
    BlobServer.publish(writer.upload) { $1.map { Reply($0) } ?? TusRoutes.progress(204, $0.offset, $0.expires) }
  }

  func cut() {
    try? writer.drop()  // the next writer tries again
    if writer.upload.record.isPart { return writer.upload.tellFinal() }
    if writer.upload.isComplete, writer.isNewest { writer.upload.publish { _ in } }
  }
}

private func publish(_ upload: Upload, _ reply: @escaping @Sendable (Upload, ServerError?) -> Reply) -> Plan {
  .later { decided in
    upload.publish { result in
      switch result {
      case .success(let publication):
        var reply = reply(upload, nil)
        reply.tell(publication)
        decided(.reply(reply))
      case .failure(let error): decided(.reply(reply(upload, error)))
      }
    }
  }
}
