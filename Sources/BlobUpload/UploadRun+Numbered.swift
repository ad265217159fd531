import Blobs

// Uploads in numbered parts, which are sent in any order.
extension UploadRun {
  /// Records the parts that the server has. A part that does not match our receipt is sent again, unless a digest shows
  /// that it has our bytes.
  func take(_ theirs: [PartReceipt], _ session: UploadSession) async throws(UploadError) {
    var session = session
    if session.partSize == nil { session.partSize = tracker.partSize }
    guard info.length != nil, session.partSize != nil else {
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

  /// Sends the parts that the server lacks, or completes the upload if it has them all.
  func stepParts(_ session: UploadSession) async throws(UploadError) -> UploadResult? {
    guard let planned = plan.numbered() else {
      throw UploadError(.restart, .journal, "the journal has a size of parts that is of no use")
    }
    let held = parts?.held ?? [:]
    let missing = planned.filter { held[$0.number] == nil }
    if missing.isEmpty {
      return try await uploadProtocol.complete(session, planned.compactMap { held[$0.number] }, context)
    }
    let sender = PartSender(
      engine: engine, source: source, validator: info.validator, session: session, context: context,
      progress: progress, name: target.path, ledger: ledger)
    let (receipts, failure) = await sender.send(missing)
    for receipt in receipts { parts?.take(receipt) }
    advance(to: parts?.bytes ?? 0, session)
    if let failure { throw failure }
    return nil
  }
}
