import BlobCrypto
import Blobs

// Detects that a source has changed between two runs.
extension UploadRun {
  /// Whether the source still has the bytes that the server has. If not, the old session is discarded and a new upload
  /// starts.
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
    // A published file stays: the server compares it with the new bytes.
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

  /// Whether checksums of the sent bytes are recorded. Otherwise only their offset is recorded.
  static func isTraced(_ source: SpooledSource, _ info: BlobInfo) -> Bool {
    info.length != nil && info.wantsTrace && source.source.access == .random
  }

  /// The source wrapped so that the offset of the sent bytes is recorded in the journal. Checksums are recorded too if
  /// the next run may find the same version with other metadata.
  func trace(from offset: Int64) -> any BlobSource {
    guard let ledger else { return source.source }
    guard Self.isTraced(source, info) else {
      tracker.noteSending(from: offset)
      return source.source
    }
    if let traced { return traced }
    let key = KeyedChecksum.newKey()
    guard let record = ledger.sending(from: offset, key: key) else { return source.source }
    let source = ChecksummedSource(source.source, from: offset, key: key, record)
    traced = source
    return source
  }
}
