import Blobs

// Uploads in numbered parts, which are sent in any order.
extension UploadRun {
  /// Records the parts that the server has. A part that does not match our receipt is sent again, unless a digest shows
  /// that it has our bytes.
  func take(_ theirs: [PartReceipt], _ session: UploadSession) async throws(UploadError) {
    var session = session
    if session.partSize == nil { session.partSize = tracker.partSize }
    guard info.length != nil || pipe != nil, session.partSize != nil else {
      throw UploadError(.giveUp, .file, "parts with numbers need a length that is known")
    }
    self.session = session
    var parts = parts ?? NumberedParts(known: receipts)
    parts.held = [:]
    for receipt in ours(of: theirs, parts) { parts.take(receipt) }
    for receipt in fitting(theirs) where parts.held[receipt.number] == nil && parts.known[receipt.number] == nil {
      if try await match([receipt]) { parts.take(receipt) }
    }
    self.parts = parts
    if isResuming { progress.resume(at: parts.bytes) }
    isResuming = false
    advance(to: parts.bytes, session)
  }

  /// Whether the source still has the bytes of the given parts of the server.
  func match(_ theirs: [PartReceipt]) async throws(UploadError) -> Bool {
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
  func ours(of theirs: [PartReceipt], _ parts: NumberedParts) -> [PartReceipt] {
    fitting(theirs).compactMap { receipt in
      guard let known = parts.known[receipt.number], known.state["etag"] == receipt.state["etag"],
        known.digest == nil || receipt.digest == nil || known.digest! == receipt.digest!
      else { return nil }
      return known
    }
  }

  /// Sends the parts that the server lacks, or completes the upload if it has them all. Before the end of the source is
  /// known, sends the next part, which was read into the spool.
  func step(_ parts: NumberedParts, _ session: UploadSession) async throws(UploadError) -> UploadResult? {
    var missing: [Part] = []
    if length == nil, let next = try await next(from: parts.bytes), next.length != 0 { missing = [next] }
    if missing.isEmpty {
      guard let planned = plan.numbered() else {
        throw UploadError(.restart, .journal, "the journal has a size of parts that is of no use")
      }
      missing = planned.filter { parts.held[$0.number] == nil }
      if missing.isEmpty {
        return try await uploadProtocol.complete(session, planned.compactMap { parts.held[$0.number] }, context)
      }
    }
    let sender = PartSender(
      engine: engine, source: source, validator: info.validator, session: session, context: context,
      progress: progress, name: target.path, ledger: ledger)
    let (receipts, failure) = await sender.send(missing)
    for receipt in receipts { self.parts?.take(receipt) }
    // A later 404 is about an upload that the server knew.
    if !receipts.isEmpty { unknownCreations.noteAnswer() }
    advance(to: self.parts?.bytes ?? 0, session)
    if let failure { throw failure }
    return nil
  }
}
