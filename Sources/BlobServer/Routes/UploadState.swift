import BlobHTTP

/// What a client that asks for its upload is told, in either dialect.
struct UploadState: Sendable {
  let record: UploadRecord
  /// nil: a final upload whose parts are not all here.
  let offset: Int64?
  /// Nanoseconds since 1970.
  let expires: Int64
  /// Nothing is left to be sent.
  let isWhole: Bool

  /// Answers once the state can be relied on. Whoever asks wants to go on from there: an older request does not move the
  /// offset any more.
  static func plan(_ call: Call, _ id: UploadID, _ answer: @escaping @Sendable (UploadState) -> Reply)
    throws(ServerError)
    -> Plan
  {
    switch try call.service.uploads.find(id) {
    case .finished(let saved):
      return .reply(
        answer(UploadState(record: saved.record, offset: saved.offset, expires: saved.expires, isWhole: true)))
    case .unfinished(let upload):
      // Before its end is looked at: an upload that cannot be published loses its parts before it says so.
      let isComplete = upload.isComplete
      let offset = try upload.takeOver()
      @Sendable func state(_ offset: Int64?, isWhole: Bool) -> UploadState {
        UploadState(record: upload.record, offset: offset, expires: upload.expires, isWhole: isWhole)
      }
      let record = upload.record
      if !isComplete, upload.isOpen { return .reply(answer(state(record.parts == nil ? offset : nil, isWhole: false))) }
      if record.isPart { return .reply(answer(state(offset, isWhole: true))) }
      // All bytes told means finished to the client, so it must be true: their request was cut or the server killed.
      return .later { decided in
        upload.publish { result in
          switch result {
          case .success: decided(.reply(answer(state(upload.offset, isWhole: true))))
          case .failure(let error) where !error.endsUpload: decided(.refuse(error))
          case .failure(let error): decided(.reply(Reply(410, text: error.message)))
          }
        }
      }
    }
  }
}
