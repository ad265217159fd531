import Blobs

// Sources of unknown length.
extension UploadEngine {
  /// Calls `send` with a source whose length is known, unless the server does not need the length.
  ///
  /// If the server needs the length before the first byte, a sequential source is first read into its spool: as far as
  /// it fits into memory, or completely if there is a folder for it.
  func knowingLength<Result>(
    _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget,
    _ send: (any BlobSource, BlobInfo, UploadTarget) async throws(UploadError) -> Result
  ) async throws(UploadError) -> Result {
    if info.length != nil { return try await send(source, info, target) }
    let held = SpooledSource(source, info, uploader.spool)
    if !uploader.destination.limits.needsLength {
      do {
        return try await send(held.source, info, target)
      } catch {
        // The server does not support chunked bodies, or needs the length before the first byte. Retries once if
        // everything fits into the spool.
        guard let status = error.status, [400, 411, 422, 501].contains(status), held.first == 0,
          let length = try await held.measure(uploader.spool, info.validator)
        else { throw error }
        return try await send(held.source, info.with(length: length), target.with(length: length))
      }
    }
    guard let length = try await held.measure(uploader.spool, info.validator) else {
      throw UploadError(
        .giveUp, .file,
        "its length is not known, it is more than \(uploader.spool.memory) bytes, and the server wants it before "
          + "the first one: --spool-dir says where all of it can be held, or --spool-memory how much of it in memory"
      )
    }
    return try await send(held.source, info.with(length: length), target.with(length: length))
  }

  /// Uploads a sequential source, in one piece if it turns out to be small enough, otherwise in numbered parts.
  ///
  /// An unfinished upload of an earlier run is discarded, because the source may not be the same.
  func uploadPipe(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, _ ledger: (any UploadLedger)?,
    resuming earlier: EarlierUpload, _ progress: UploadProgress
  ) async throws(UploadError) -> UploadResult {
    if let session = earlier.session {
      let isDoubted = earlier.doubted != nil
      // The source has not changed, and the response to the last request may have been lost.
      if !isDoubted, info.validator != nil, let result = try await finished(session, target) { return result }
      await discard(session, ledger)
      if isDoubted, let validator = info.validator { ledger?.recognized(validator) }
    }
    let options = uploader.spool.forNumberedParts
    let plan = uploader.pipePlan
    let held = SpooledSource(source, info, options)
    let room = plan?.partSize ?? Int64(options.memory)
    let there = try await held.look(from: 0, room, info.validator)
    let isWhole = there < room
    guard isWhole || plan != nil else {
      throw UploadError(
        .giveUp, .file,
        "its length is not known, it is more than \(options.memory) bytes, and a part of it, which is "
          + "held until it has arrived, must have \(uploader.destination.limits.smallest) at least: --spool-memory says how many "
          + "can be held")
    }
    let run = UploadRun(
      self, held.source, isWhole ? info.with(length: there) : info, isWhole ? target.with(length: there) : target,
      ledger,
      pipe: isWhole ? nil : plan, progress)
    return try await run.run()
  }

  private func finished(_ session: UploadSession, _ target: UploadTarget) async throws(UploadError) -> UploadResult? {
    do {
      let held = try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await uploader.destination.uploadProtocol.held(by: session, context())
      }
      if case .finished(let result) = held {
        try StoredCheck(target: target, length: nil, sent: nil).check(result)
        return result
      }
    } catch {
      if error.recovery != .restart { throw error }
    }
    return nil
  }
}

extension SpooledSource {
  /// Reads the whole source into the spool and returns its length; nil: the spool cannot hold it.
  fileprivate func measure(_ options: SpoolOptions, _ validator: Validator?) async throws(UploadError) -> Int64? {
    var room = Int64.max
    if let spool = source as? Spool, options.folder == nil { room = Int64(spool.memory) }
    let there = try await look(from: 0, room, validator)
    // The spool is exactly full, so the source may have more bytes.
    return there < room ? there : nil
  }
}

extension UploadTarget {
  func with(length: Int64) -> UploadTarget {
    var target = self
    target.length = length
    return target
  }
}
