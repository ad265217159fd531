import Blobs

/// The state of an upload's numbered parts.
struct NumberedParts: Sendable {
  /// Parts of this plan that the server has.
  var held: [Int: PartReceipt] = [:]
  /// Receipts from this run or an earlier one: a part on the server counts only if it matches its receipt.
  var known: [Int: PartReceipt] = [:]

  init(known: [PartReceipt]) {
    for receipt in known { self.known[receipt.number] = receipt }
  }

  var bytes: Int64 { held.values.lazy.map(\.held).clampedSum }

  mutating func take(_ receipt: PartReceipt) {
    held[receipt.number] = receipt
    known[receipt.number] = receipt
  }
}

/// Sends the numbered parts of one upload. Each part fails, waits and is retried independently.
struct PartSender: Sendable {
  let engine: UploadEngine
  let source: SpooledSource
  let validator: Validator?
  let session: UploadSession
  let context: UploadContext
  let progress: UploadProgress
  let name: BytePath
  let ledger: (any UploadLedger)?

  private var uploader: Uploader { _read { yield engine.uploader } }

  /// Sends several parts at a time, if the source permits it. If one fails for good, the receipts of those that have
  /// arrived are returned as well.
  func send(_ parts: [Part]) async -> (receipts: [PartReceipt], failure: UploadError?) {
    let isOneByOne = source.source.access == .sequential || !uploader.destination.limits.isParallel
    let (receipts, failure) = await uploader.atOnce(parts, isOneByOne: isOneByOne, bytes: { $0.length ?? 0 }, send)
    return (receipts, failure)
  }

  @Sendable private func send(_ part: Part) async -> Result<PartReceipt, UploadError> {
    var failures = FailureCount()
    while true {
      let sent = SentCounter()
      var with = context
      with.events = CountedEvents(context.events, in: sent)
      do throws(UploadError) {
        let receipt = try await receipt(of: part, with)
        progress.acknowledge(receipt.held, sent: sent.bytes.load(ordering: .relaxed))
        ledger?.receipt(receipt)
        ledger?.acknowledged(progress.acknowledged)
        // If parts are sent one by one, they arrive in order.
        source.acknowledge(part.start + receipt.held)
        return .success(receipt)
      } catch {
        progress.advance(by: -sent.bytes.load(ordering: .relaxed))
        if error.recovery == .giveUp || error.recovery == .restart { return .failure(error) }
        do throws(UploadError) {
          try await uploader.wait(after: error, &failures, "\(name), part \(part.number)")
        } catch {
          return .failure(error)
        }
      }
    }
  }

  private func receipt(of part: Part, _ with: UploadContext) async throws(UploadError) -> PartReceipt {
    if part.start < source.first { throw source.lost(from: part.start) }
    try await source.skip(to: part.start, validator)
    let body = BlobSlice(source.source, start: part.start, length: part.length, validator: validator)
    switch try await uploader.destination.uploadProtocol.send(part, body, to: session, with) {
    case .receipt(let receipt, _):
      if receipt.number == part.number, receipt.held == part.length { return receipt }
      throw UploadError(
        .resync, .destination,
        "\(name): of part \(part.number), with \(part.length ?? 0) bytes, the server kept \(receipt.held)")
    case .finished:
      throw UploadError(
        .giveUp, .destination, "\(name): the server took part \(part.number) for the whole: it cannot be trusted")
    }
  }
}

extension [PartReceipt] {
  /// Whether the source has the same bytes as each of these parts, according to the parts' digests. A part without a
  /// digest counts as different. Reads the source.
  func match(_ source: any BlobSource, _ validator: Validator?) async throws(UploadError) -> Bool {
    for receipt in self {
      guard let digest = receipt.digest else { return false }
      let slice = BlobSlice(source, start: receipt.start, length: receipt.held, validator: validator)
      if try await digests(of: slice, [digest.algorithm])[0] != digest.value { return false }
    }
    return true
  }
}

extension UploadSession {
  /// Size in bytes of each numbered part but the last: part `n` begins at `(n - 1) * partSize`. nil: parts have no
  /// numbers. The engine stores it in `state`.
  public internal(set) var partSize: Int64? {
    get { state["part-size"].flatMap { Int64(digits: $0) }.flatMap { $0 > 0 ? $0 : nil } }
    set { state["part-size"] = newValue.map { String($0) } }
  }
}
