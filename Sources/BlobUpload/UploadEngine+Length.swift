import Blobs

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
        return try await send(held.source, info.of(length), target.of(length))
      }
    }
    guard let length = try await held.measure(uploader.spool, info.validator) else {
      throw UploadError(
        .giveUp, .file,
        "its length is not known, it is more than \(uploader.spool.memory) bytes, and the server wants it before "
          + "the first one: --spool-dir says where all of it can be held, or --spool-memory how much of it in memory"
      )
    }
    return try await send(held.source, info.of(length), target.of(length))
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

extension BlobInfo {
  func of(_ length: Int64) -> BlobInfo {
    var info = self
    info.length = length
    return info
  }
}

extension UploadTarget {
  func of(_ length: Int64) -> UploadTarget {
    var target = self
    target.length = length
    return target
  }
}
