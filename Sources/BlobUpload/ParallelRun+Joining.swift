import BlobHTTP
import Blobs

// Concatenation of the parts of a file.
extension ParallelRun {
  /// Asks the server to concatenate the parts, unless it was asked before, and deletes the parts once the whole upload
  /// exists.
  mutating func join() async throws(UploadError) -> UploadResult {
    let context = engine.context()
    let whole: HTTPURL
    if let joined {
      whole = joined
    } else {
      // A repeated request must be the same one.
      if target.overwrite, target.replaced == .unknown {
        target.replaced = try await replacement.file(at: target, uploader.destination.uploadProtocol, context)
      }
      whole = try await concatenation.concatenate(parts.compactMap(\.url), as: target, context)
      joined = whole
      // Recorded before a part is deleted: the remaining parts alone could not be concatenated again.
      var session = UploadSession(parts: size, length: length)
      session.joined = whole
      ledger?.opened(session)
      try await ledger?.flush()
    }
    // The server may still be concatenating. A server that has finished may have forgotten the upload.
    do throws(UploadError) {
      try await checkIsWhole(whole, context)
    } catch {
      guard case .restart = error.recovery else { throw error }
      try await checkIsThere(whole, context)
      return UploadResult(location: whole.text)
    }
    await forgetParts(besides: whole, context)
    return UploadResult(location: whole.text)
  }

  /// Finishes an upload whose parts an earlier run has concatenated. nil: the server does not know the whole upload any
  /// more, so its state is unknown.
  func end(joinedAs whole: HTTPURL) async throws(UploadError) -> UploadResult? {
    let context = engine.context()
    do {
      try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await checkIsWhole(whole, context)
      }
    } catch {
      if case .restart = error.recovery { return nil }
      throw error.refusesQuestion || error.status == 500 ? error.ofEarlierUpload : error
    }
    progress.resume(at: length)
    await forgetParts(besides: whole, context)
    return UploadResult(location: whole.text, length: length)
  }

  /// Called when the server refuses to concatenate the parts, for example because it has already made a file of some of
  /// them. Returns the file with the target's name if it has the bytes of the source; nil: it has other bytes, or the
  /// server does not let anyone read it.
  func stored() async throws(UploadError) -> UploadResult? {
    let context = engine.context()
    let body = BlobSlice(source, length: length, validator: info.validator)
    do throws(UploadError) {
      guard case .sameBytes = try await context.nameInUse(target.url, by: body, length: length) else { return nil }
    } catch {
      // The caller reports the server's refusal instead of this error.
      if error.side == .cancelled || error.side == .source { throw error }
      return nil
    }
    progress.resume(at: length)
    await forgetParts(besides: target.url, context)
    return UploadResult(location: target.url.text, length: length, isCompared: true)
  }

  private func checkIsWhole(_ upload: HTTPURL, _ context: UploadContext) async throws(UploadError) {
    if try await concatenation.isWhole(upload, length: length, context) { return }
    throw UploadError(.retry(after: nil), .file, "\(upload): the server has not put the parts together yet")
  }

  /// Checks the file if the server has concatenated the parts and does not know the upload any more. If the file may
  /// not be read, the server is trusted.
  private func checkIsThere(_ upload: HTTPURL, _ context: UploadContext) async throws(UploadError) {
    switch try await context.remoteLength(of: target.url, expecting: length) {
    case .hidden, .found(nil), .found(length): return
    case .found, .noContent, .missing:
      throw UploadError(
        .giveUp, .file,
        "\(target.endpoint): the server said that it has put the \(parts.count) parts together, and knows neither the upload "
          + "(\(upload)) nor a file of \(length) bytes at \(target.url). --parts-at-once 1 sends it in one upload")
    }
  }

  /// Deletes the parts: most servers copy and keep them. Parts that cannot be deleted expire on the server. A server
  /// that concatenates in place may return the URL of one of the parts, which is then the file and is not deleted.
  private func forgetParts(besides whole: HTTPURL, _ context: UploadContext) async {
    let ofParts = concatenation.ofParts
    func delete(_ url: HTTPURL) async -> Bool {
      (try? await ofParts.abort(UploadSession(state: ["url": url.text]), context)) != nil
    }
    let urls = parts.compactMap(\.url).filter { $0 != whole }
    guard let first = urls.first, await delete(first) else { return }
    await withTaskGroup(of: Void.self) { group in
      for url in urls.dropFirst() {
        group.addTask { await uploader.destination.acquaintance.parts.pass { _ = await delete(url) } }
      }
    }
  }
}
