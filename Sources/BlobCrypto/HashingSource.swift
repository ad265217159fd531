import Blobs

/// A source whose bytes feed a digest, in order and once each, as they are read.
///
/// Opening at 0 begins a new digest. Opening at a later byte goes on with it, if that byte is not beyond those fed and
/// the version is the same: parts read one after the other, and parts read again, give one digest of the whole.
/// A reader that would leave a gap, or whose version is another, or that cannot tell, feeds nothing.
public struct HashingSource: BlobSource {
  private let source: any BlobSource
  private let ledger: Ledger

  public init(_ source: any BlobSource, _ algorithm: Digest.Algorithm) {
    self.source = source
    ledger = Ledger(algorithm)
  }

  /// The digest of all bytes from 0 to the end; nil until the end was reached. Any thread may ask.
  public var value: [UInt8]? { ledger.value }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try source.open(at: offset, cancel)
    let pass = ledger.join(at: offset, reader.info, onlyOnce: source.access == .sequential)
    return HashingReader(reader, ledger, pass, at: offset)
  }
}

/// The digest that the readers of one source feed together.
private final class Ledger: Sendable {
  private struct State {
    var digest: Digest
    /// Counts the openings at 0; readers of an earlier one feed nothing any more.
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

  /// The pass that a reader at `offset` belongs to; nil if it has nothing to add.
  /// Bytes that can be had only once (`onlyOnce`) are of one version without a validator to say so.
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

  /// Takes what is new in `bytes`, which begin at `offset`; none mean the end. The lock is held while they are hashed:
  /// only readers of the same bytes wait for it.
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

private final class HashingReader: BlobReader {
  private let reader: any BlobReader
  private let ledger: Ledger
  private let pass: Int?
  private var offset: Int64

  init(_ reader: any BlobReader, _ ledger: Ledger, _ pass: Int?, at offset: Int64) {
    self.reader = reader
    self.ledger = ledger
    self.pass = pass
    self.offset = offset
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.readChecked(into: buffer)
    if let pass { ledger.feed(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), at: offset, pass) }
    offset += Int64(count)
    return count
  }

  // What is sent from a region is not hashed.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
