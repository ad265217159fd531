import Blobs

// Finds out how many bytes of an upload the server has, and whether they are bytes of the source.
extension UploadRun {
  /// Asks the server how much it has. It is not asked while a request of an earlier process still appends bytes: it may
  /// no longer know the upload once it has all of them.
  func query(_ session: UploadSession) async throws(UploadError) -> UploadResult? {
    if let earlier, earlier.doubted == nil, let requests = uploader.inFlight,
      let range = requests.range(appendingTo: session)
    {
      let body = BlobSlice(
        trace(from: range.lowerBound), start: range.lowerBound, length: range.upperBound - range.lowerBound,
        validator: info.validator)
      guard try await requests.haveBytes(of: body) else {
        await discard(session)
        return nil
      }
      // Only reading can find the end of a source of unknown length, and the planned part may end elsewhere.
      if info.length != nil { return try await take(.upTo(range.lowerBound, session)) }
    }
    let held = try await uploadProtocol.held(by: session, context)
    recovery.unknownCreations.noteAnswer()
    if let doubted = earlier?.doubted, try await !stillHas(doubted, held) {
      // A published file stays: the server compares it with the new bytes.
      if case .finished = held { restart() } else { await discard(session) }
      return nil
    }
    settleDoubt()
    return try await take(held)
  }

  /// Discards a session that has bytes of another version, so that a new upload starts.
  private func discard(_ session: UploadSession) async {
    await engine.discard(session, ledger)
    restart()
  }

  /// Whether the source still has the bytes that the server has.
  private func stillHas(_ ranges: [SentRange], _ held: Held) async throws(UploadError) -> Bool {
    var end = info.length ?? .max
    switch held {
    case .parts(let theirs, _): return try await match(ours(of: theirs, NumberedParts(known: earlier?.receipts ?? [])))
    case .upTo(let offset, _): end = offset
    case .finished: break
    }
    return try await readingSource { [source, info, end] cancel, noteRead throws(BlobError) in
      try ranges.match(source.source, info, upTo: end, cancel, noteRead)
    }
  }

  /// The version of the source is the one of the earlier run, or the earlier run no longer matters.
  func settleDoubt() {
    if earlier?.doubted == nil { return }
    earlier?.doubted = nil
    if let validator = info.validator { ledger?.recognized(validator) }
  }
}

// Numbered parts, which are sent in any order.
extension UploadRun {
  /// Records the parts that the server has. A part that does not match our receipt is sent again, unless a digest shows
  /// that it has our bytes.
  func take(_ theirs: [PartReceipt], _ session: UploadSession) async throws(UploadError) {
    var session = session
    if session.partSize == nil { session.partSize = tracker.partSize }
    guard info.length != nil || setup.pipe != nil, session.partSize != nil else {
      throw UploadError(.giveUp, .file, "parts with numbers need a length that is known")
    }
    self.session = session
    var parts = planning.numbered ?? NumberedParts(known: earlier?.receipts ?? [])
    parts.held = [:]
    for receipt in ours(of: theirs, parts) { parts.take(receipt) }
    for receipt in fitting(theirs) where parts.held[receipt.number] == nil && parts.known[receipt.number] == nil {
      if try await match([receipt]) { parts.take(receipt) }
    }
    planning.numbered = parts
    if earlier != nil { progress.resume(at: parts.bytes) }
    earlier = nil
    advance(to: parts.bytes, session)
  }

  /// Whether the source still has the bytes of the given parts of the server.
  private func match(_ theirs: [PartReceipt]) async throws(UploadError) -> Bool {
    // A sequential source cannot be read for a comparison.
    if source.source.access == .sequential { return false }
    return try await theirs.match(source.source, info.validator)
  }

  /// The parts whose offset and length match the plan.
  private func fitting(_ theirs: [PartReceipt]) -> [PartReceipt] {
    let plan = plan
    return theirs.filter { receipt in
      guard let size = plan.partSize, receipt.number > 0, Int64(receipt.number) <= Int64.max / size else {
        return false
      }
      let start = Int64(receipt.number - 1) * size
      return receipt.start == start && plan.part(from: start, number: receipt.number)?.length == receipt.held
    }
  }

  /// The parts that match one of our receipts.
  private func ours(of theirs: [PartReceipt], _ parts: NumberedParts) -> [PartReceipt] {
    fitting(theirs).compactMap { receipt in
      guard let known = parts.known[receipt.number], known.state["etag"] == receipt.state["etag"],
        known.digest == nil || receipt.digest == nil || known.digest! == receipt.digest!
      else { return nil }
      return known
    }
  }

  /// Sends the parts that the server lacks, or completes the upload if it has them all. Before the end of the source is
  /// known, sends the part that begins at `offset`, which was read into the spool.
  func stepParts(of session: UploadSession, from offset: Int64) async throws(UploadError) -> UploadResult? {
    var missing: [Part] = []
    if length == nil, let next = try await next(from: offset), next.length != 0 { missing = [next] }
    if missing.isEmpty {
      guard let planned = plan.numbered() else {
        throw UploadError(.restart, .journal, "the journal has a size of parts that is of no use")
      }
      let held = planning.numbered?.held ?? [:]
      missing = planned.filter { held[$0.number] == nil }
      if missing.isEmpty {
        return try await uploadProtocol.complete(session, planned.compactMap { held[$0.number] }, context)
      }
    }
    let (arrived, failure) = await setup.send(missing, to: session)
    for receipt in arrived { planning.numbered?.take(receipt) }
    // A later 404 is about an upload that the server knew.
    if !arrived.isEmpty { recovery.unknownCreations.noteAnswer() }
    advance(to: planning.numbered?.bytes ?? 0, session)
    if let failure { throw failure }
    return nil
  }
}
