import Blobs

/// A source that feeds its bytes to a digest as they are read, in order and each byte once.
///
/// Opening at 0 starts a new digest. Opening at a later byte continues the digest if there is no gap and the version is
/// the same: parts that are read one after the other, or read again, result in one digest of the whole. A reader that
/// would leave a gap, has another version, or cannot prove its version, feeds nothing.
public struct HashingSource: BlobSource {
  private let source: any BlobSource
  private let ledger: Ledger
  /// The algorithm of the digest.
  public let algorithm: Digest.Algorithm

  /// Wraps a source, without reading it. All copies of this value share one digest.
  public init(_ source: any BlobSource, _ algorithm: Digest.Algorithm) {
    (self.source, self.algorithm) = (source, algorithm)
    ledger = Ledger(algorithm)
  }

  /// The digest of all bytes from 0 to the end; nil until the end was reached. Any thread may ask.
  public var value: [UInt8]? { ledger.value }

  /// The bytes before this offset were fed to the digest.
  package var reached: Int64 { ledger.reached }

  public var access: BlobAccess { source.access }

  public func closeUntilNeeded() { source.closeUntilNeeded() }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try source.open(at: offset, cancel)
    let pass = ledger.join(at: offset, reader.info, onlyOnce: source.access == .sequential)
    return ObservedReader(reader, at: offset) { [ledger] bytes, offset in
      if let pass { ledger.feed(bytes, at: offset, pass) }
    }
  }
}

/// The digest that all readers of one source update together.
private final class Ledger: Sendable {
  private struct State {
    var digest: Digest
    /// The number of openings at 0. Readers of an earlier pass feed nothing any more.
    var pass = 0
    var info = BlobInfo(length: nil)
    var fed: Int64 = 0
    var value: [UInt8]?

    mutating func publish() { if value == nil { value = digest.value() } }
    mutating func publishAtEnd() { if fed == info.length { publish() } }
  }
  private let state: Monitor<State>

  init(_ algorithm: Digest.Algorithm) { state = Monitor(State(digest: Digest(algorithm))) }

  var value: [UInt8]? { state.update { $0.value } }
  var reached: Int64 { state.update { $0.fed } }

  /// The pass that a reader at `offset` belongs to; nil if the reader must not feed the digest. With `onlyOnce`, bytes
  /// can be read only once, so they belong to one version even without a validator.
  func join(at offset: Int64, _ info: BlobInfo, onlyOnce: Bool) -> Int? {
    state.update { state in
      if offset == 0 {
        state.digest.reset()
        state.pass += 1
        (state.info, state.fed, state.value) = (info, 0, nil)
        state.publishAtEnd()
        return state.pass
      }
      let isSame = info == state.info && (info.validator != nil || onlyOnce)
      return isSame && state.pass > 0 && offset <= state.fed ? state.pass : nil
    }
  }

  /// Feeds the new bytes of `bytes`, which begin at `offset`; empty means the end. The lock is held during hashing:
  /// only readers of the same source wait for it.
  func feed(_ bytes: UnsafeRawBufferPointer, at offset: Int64, _ pass: Int) {
    state.update { state in
      guard pass == state.pass, offset <= state.fed else { return }
      if bytes.isEmpty && offset == state.fed { return state.publish() }
      let known = state.fed - offset
      guard known < Int64(bytes.count) else { return }
      state.digest.update(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Int(known))))
      state.fed = offset + Int64(bytes.count)
      state.publishAtEnd()
    }
  }
}
