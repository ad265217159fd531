import BlobHTTP

/// The state of an upload that a client has queried, in either protocol.
struct UploadState: Sendable {
  let record: UploadRecord
  /// nil: a final upload whose parts are incomplete.
  let offset: Int64?
  /// Nanoseconds since 1970.
  let expires: Int64
  /// Whether all bytes have arrived.
  let isWhole: Bool
  /// Whether the file has no name yet, since other members of its group have not arrived.
  var isWaiting = false

  /// Responds once the state is reliable. The client wants to resume at the offset, so older requests are stopped from
  /// changing it.
  static func plan(_ call: RoutedRequest, _ id: UploadID, _ answer: @escaping @Sendable (UploadState) -> Reply)
    throws(ServerError)
    -> Plan
  {
    switch try call.service.uploads.find(id) {
    case .finished(let saved):
      return .reply(
        answer(UploadState(record: saved.record, offset: saved.offset, expires: saved.expires, isWhole: true)))
    case .unfinished(let upload):
      // Read before the offset: an upload that cannot be published loses its parts before it reports that.
      let wasComplete = upload.isComplete
      let offset = try upload.takeOver()
      @Sendable func state(_ offset: Int64?, isWhole: Bool) -> UploadState {
        UploadState(record: upload.record, offset: offset, expires: upload.expires, isWhole: isWhole)
      }
      let record = upload.record
      // The last bytes may have arrived meanwhile.
      let isComplete = wasComplete || record.parts == nil && record.isComplete(at: offset)
      if !isComplete, upload.isOpen { return .reply(answer(state(record.parts == nil ? offset : nil, isWhole: false))) }
      if record.isPart { return .reply(answer(state(offset, isWhole: true))) }
      // The client treats an upload with all bytes as finished, so it must be published first. This happens if the
      // request that brought the last byte was interrupted or the server was killed.
      return .later { decided in
        upload.publish { result in
          switch result {
          case .success(let publication):
            var state = state(upload.offset, isWhole: true)
            state.isWaiting = publication == nil
            var reply = answer(state)
            if state.isWaiting { reply.tell(publication) }
            decided(.reply(reply))
          case .failure(let error) where !error.endsUpload: decided(.refuse(error))
          case .failure(let error): decided(.reply(Reply(410, text: error.message)))
          }
        }
      }
    }
  }
}
