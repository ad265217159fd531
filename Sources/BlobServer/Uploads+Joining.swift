// The concatenation of parts to a final upload.
extension Uploads {
  /// Called when a part has its last byte: its final upload may be complete now.
  func completed(_ part: Upload) {
    guard let final = store.abilities.joining?.claimant(of: part.id) else { return }
    workers.submit { self.publishIfComplete(final) }
  }

  func areComplete(_ parts: [UploadID]) -> Bool {
    parts.allSatisfy { part in
      switch try? find(part) {
      case .finished: true
      // A damaged record may name another final upload, or the upload itself.
      case .unfinished(let upload): upload.record.isPart && upload.isComplete
      case nil: false  // the part is gone, so the upload never completes
      }
    }
  }

  /// The bytes of a final upload, whose parts are complete, and their length. Blocks while they are copied.
  func join(_ record: UploadRecord) throws(ServerError) -> (any Reception, length: Int64) {
    var length: Int64 = 0
    for part in record.parts ?? [] {
      switch try find(part) {
      case .finished(let saved): length = length.addingClamped(saved.offset)
      case .unfinished(let upload):
        length = length.addingClamped(try upload.seal())
        sealed(upload.record)
      }
    }
    if let maxSize, length > maxSize {
      throw ServerError(413, "an upload may have \(maxSize) bytes at most, the parts have \(length)", kind: .tooLarge)
    }
    var record = record
    if record.length == nil {
      record.length = length
      try store.save(record)
    }
    return (try store.required(\.joining, "join parts").join(record), length)
  }

  /// Marks a part as finished, which its client sees from now on.
  private func sealed(_ record: UploadRecord) {
    let saved = SavedUpload(
      record: record, offset: record.length ?? 0, isFinished: true, expires: wallClock().addingClamped(expire))
    state.withLock { state in
      state.live[record.id] = nil
      state.recent.remember(record.id, saved)
    }
  }
}
