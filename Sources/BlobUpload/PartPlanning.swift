import Blobs

/// How the source is divided into parts, as far as that is known.
struct PartPlanning {
  /// The offset at which a source of unknown length was found to end.
  var end: Int64?
  /// Parts of unknown length are read ahead, because each request must give the length of its body.
  var measures: Bool
  /// The number of the next part, if the protocol counts offsets.
  var number = 1
  /// The state of numbered parts; nil: the protocol counts offsets, or the server has not responded yet.
  var numbered: NumberedParts?

  /// The number of the next part of a source of unknown length, whose parts are sent in order.
  var next: Int { numbered.map { $0.held.count + 1 } ?? number }
}

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
