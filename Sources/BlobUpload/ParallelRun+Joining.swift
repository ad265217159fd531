import BlobHTTP
import Blobs

// How the parts of a file become one.
extension ParallelRun {
  /// Has the parts put together, unless the server was asked for that before, and deletes them once the whole is there.
  mutating func join() async throws(UploadError) -> UploadResult {
    let context = engine.context()
    let whole: HTTPURL
    if let joined {
      whole = joined
    } else {
      whole = try await tus.concatenate(parts.compactMap(\.url), as: target, context)
      joined = whole
      // Noted before a part is deleted: with the parts that are left the whole could not be asked for again.
      var session = UploadSession(parts: size, length: length)
      session.joined = whole
      ledger?.opened(session)
      try await ledger?.flush()
    }
    // A server may be at work on it, and one that has it whole need not know it any more.
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

  /// Ends an upload whose parts an earlier run had put together. nil: the server does not know the whole any more, so that
  /// nothing tells what has become of it.
  func end(joinedAs whole: HTTPURL) async throws(UploadError) -> UploadResult? {
    let context = engine.context()
    do {
      try await uploader.patiently("\(target.path)") { () async throws(UploadError) in
        try await checkIsWhole(whole, context)
      }
    } catch {
      guard case .restart = error.recovery else { throw error }
      return nil
    }
    progress.resume(at: length)
    await forgetParts(besides: whole, context)
    return UploadResult(location: whole.text, length: length)
  }

  /// The server refuses to put the parts together, as one does that has made a file of some of them. Returns the file that
  /// has the name, where it has the bytes of the source; nil: it has not, or the server lets nobody look.
  func stored() async throws(UploadError) -> UploadResult? {
    let context = engine.context()
    let body = BlobSlice(source, length: length, validator: info.validator)
    do throws(UploadError) {
      guard case .sameBytes = try await context.nameInUse(target.url, by: body, length: length) else { return nil }
    } catch {
      // What the server has refused is what there is to tell.
      if error.side == .cancelled || error.side == .source { throw error }
      return nil
    }
    progress.resume(at: length)
    await forgetParts(besides: target.url, context)
    return UploadResult(location: target.url.text, length: length, isCompared: true)
  }

  private func checkIsWhole(_ upload: HTTPURL, _ context: UploadContext) async throws(UploadError) {
    if try await tus.isWhole(upload, length: length, context) { return }
    throw UploadError(.retry(after: nil), .file, "\(upload): the server has not put the parts together yet")
  }

  /// A server that has put the parts together and does not know the upload any more must have the file. One that does not
  /// let anyone look is believed.
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

  /// Most servers copy the parts, and keep them. What cannot be deleted expires there. A server that puts the parts together
  /// in place may answer with the URL of one of them: that one is the file.
  private func forgetParts(besides whole: HTTPURL, _ context: UploadContext) async {
    func delete(_ url: HTTPURL) async -> Bool { (try? await tus.abort(url, context)) != nil }
    let urls = parts.compactMap(\.url).filter { $0 != whole }
    guard let first = urls.first, await delete(first) else { return }
    await withTaskGroup(of: Void.self) { group in
      for url in urls.dropFirst() {
        group.addTask { await uploader.destination.acquaintance.parts.pass { _ = await delete(url) } }
      }
    }
  }
}
