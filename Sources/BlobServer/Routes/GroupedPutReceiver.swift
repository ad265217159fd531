import BlobHTTP
import Blobs

/// Receives the body of a PUT or POST whose file gets its name together with the other members of its group. The upload is
/// saved once all its bytes are there, and is lost if the connection breaks before.
final class GroupedPutReceiver: BodyReceiver {
  private let upload: Upload
  private let writer: UploadWriter
  private let digests: BodyDigests?
  /// The length of the whole file in bytes, if the request states it in addition to the length of its body.
  private let whole: Int64?
  private let head: HTTPHeaders
  private let service: Service
  /// The file's URL, relative to the request's; nil: they are the same.
  private let location: String?

  init(_ upload: Upload, _ writer: UploadWriter, _ digests: BodyDigests?, whole: Int64?, _ call: RoutedRequest) {
    (self.upload, self.writer, self.digests, self.whole) = (upload, writer, digests, whole)
    (head, service) = (call.headers, call.service)
    location = call.method == "POST" ? call.target.reference(to: upload.record.target.url) : nil
  }

  func take(_ piece: BodyPiece) throws(ServerError) {
    digests?.take(piece)
    try writer.append(piece)
  }

  var takesPipes: Bool { digests == nil }

  func end(_ trailers: HTTPHeaders) -> Plan {
    service.onWorker { [self] () throws(ServerError) in
      do throws(ServerError) {
        if let whole { try PartialBody.check(upload.offset, isWhole: whole) }
        try BodyDigests.checkAnnounced(trailers, by: head, [.content, .representation])
        try digests?.check(trailers)
        try writer.end(isLast: true)
      } catch {
        writer.terminate()
        throw error
      }
      return .later { [self] decided in
        upload.publish { result in decided(.reply(self.answer(result))) }
      }
    }
  }

  private func answer(_ result: Result<Publication?, ServerError>) -> Reply {
    switch result {
    case .success(let publication):
      // The file is not stored under its name yet. RFC 9110 §15.3.3.
      guard let publication else {
        var reply = Reply(202)
        reply.tell(nil)
        return reply
      }
      return Reply(publication, at: location, digests, service)
    case .failure(let error):
      // Nobody can go on with it.
      try? upload.terminate()
      return Reply(error)
    }
  }

  func cut() { service.workers.submit { [writer] in writer.terminate() } }
}
