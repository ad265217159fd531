import BlobCrypto
import Blobs

// What keeps two versions of a source apart, from one run to the next.
extension UploadRun {
  /// Whether the source still has what the server holds of it. If not, all begins anew; the old session is given up.
  func stillHas(
    _ ranges: [SentRange], _ held: Held, _ session: UploadSession
  ) async throws(UploadError) -> Bool {
    let isSame =
      switch held {
      case .upTo(let offset, _): try await match(ranges, upTo: offset)
      case .parts(let theirs, _): try await match(ours(of: theirs, NumberedParts(known: receipts)))
      case .finished: try await match(ranges, upTo: info.length ?? .max)
      }
    if isSame {
      settleDoubt()
      return true
    }
    // What is published stays: the server compares it with what comes.
    if case .finished = held {} else { await engine.discard(session, ledger) }
    restart()
    return false
  }

  private func match(_ ranges: [SentRange], upTo end: Int64) async throws(UploadError) -> Bool {
    try await readingSource { [source, info] cancel, noteRead throws(BlobError) in
      try ranges.match(source.source, info, upTo: end, cancel, noteRead)
    }
  }

  func settleDoubt() {
    if doubted == nil { return }
    doubted = nil
    if let validator = info.validator { ledger?.recognized(validator) }
  }

  /// What is sent is summed. Otherwise it is only noted how far it goes.
  static func isTraced(_ source: SpooledSource, _ info: BlobInfo) -> Bool {
    info.length != nil && info.wantsTrace && source.source.access == .random
  }

  /// The source as it is sent, noted in the journal as far as it goes; summed where the next run may meet the same version
  /// under other numbers.
  func trace(from offset: Int64) -> any BlobSource {
    guard let ledger else { return source.source }
    guard Self.isTraced(source, info) else {
      tracker.noteSending(from: offset)
      return source.source
    }
    if let traced { return traced }
    let key = KeyedChecksum.newKey()
    guard let record = ledger.sending(from: offset, key: key) else { return source.source }
    let source = TracedSource(source.source, from: offset, key: key, record)
    traced = source
    return source
  }
}
