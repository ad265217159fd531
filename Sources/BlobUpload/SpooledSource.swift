import Blobs

/// How much of a source that is read once is held, so that what did not arrive can be sent again.
public struct SpoolOptions: Sendable, Hashable {
  /// Bytes for each upload; a part is at most half of it, so that the next one can be read while this one is in doubt.
  public var memory: Int
  /// Where what does not fit goes, in a temporary file without a name; nil: nothing is written to disk, and a source
  /// can be sent again only from the last `memory` bytes on.
  public var folder: BytePath?

  public init(memory: Int = 12 << 20, folder: BytePath? = nil) {
    precondition(memory >= 2)
    self.memory = memory
    self.folder = folder
  }
}

/// A source as an upload reads it: where it is sequential, with the bytes held that the server has not acknowledged.
struct SpooledSource: Sendable {
  /// What slices are made of.
  let source: any BlobSource
  /// nil where any byte can be read at any time.
  private let spool: Spool?

  init(_ source: any BlobSource, _ options: SpoolOptions) {
    switch source.access {
    case .random: (self.source, spool) = (source, nil)
    case .sequential:
      var spool = source as? Spool ?? Spool(source, memory: options.memory, spillingInto: options.folder)
      spool.patience = .seconds(5)
      (self.source, self.spool) = (spool, spool)
    }
  }

  /// Bytes that a part may have to be sure that it can be sent again; nil: any.
  var largestPart: Int64? { spool.map { Int64(max(1, $0.memory / 2)) } }

  /// Bytes of a body from the first byte on, to be sure that it can be sent again; nil: any.
  var largestFirst: Int64? { spool.map { Int64($0.memory) } }

  /// The first byte that can be sent.
  var first: Int64 { spool?.held.lowerBound ?? 0 }

  /// The server wants bytes that are not held any more.
  func lost(_ offset: Int64, of name: BytePath) -> UploadError {
    UploadError(
      .giveUp, .file,
      "\(name): the server has lost what it had after byte \(offset), and the source, which is read once, is held "
        + "from byte \(first) on only")
  }

  /// The server has everything before `offset`.
  func acknowledge(_ offset: Int64) { spool?.release(upTo: offset) }

  /// Reads `count` bytes ahead, from `offset` on, and returns how many there are: fewer only where the source ends.
  /// What is read is held, as far as there is room. Waits for the source.
  func look(from offset: Int64, _ count: Int64, _ validator: Validator?) async throws(UploadError) -> Int64 {
    let cancel = Cancellation()
    let result = await withTaskCancellationHandler {
      await Self.threads.run { () -> Result<Int64, BlobError> in
        do throws(BlobError) { return .success(try read(from: offset, count, validator, cancel)) } catch {
          return .failure(error)
        }
      }
    } onCancel: {
      cancel.cancel()
    }
    do { return try result.get() } catch { throw UploadError(error) }
  }

  /// Goes to `offset` in a source that an earlier run had read so far: what is before it has arrived.
  func skip(to offset: Int64, _ validator: Validator?) async throws(UploadError) {
    guard let spool, case let end = spool.held.upperBound, end < offset else { return }
    let passed = try await look(from: end, offset - end, validator)
    spool.release(upTo: end + passed)
  }

  private func read(
    from offset: Int64, _ count: Int64, _ validator: Validator?, _ cancel: Cancellation
  ) throws(BlobError) -> Int64 {
    let reader = try BlobSlice(source, start: offset, validator: validator).open(cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(min(count, 64 << 10)), alignment: 16)
    defer { buffer.deallocate() }
    var seen: Int64 = 0
    while seen < count {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: count - seen)))
      let read = try reader.read(into: window)
      if read == 0 { break }
      seen += Int64(read)
    }
    return seen
  }

  /// Sources of this kind are slow: the shared threads are for short calls.
  private static let threads = BlockingPool("fullbore-spool", threads: 16, patience: .seconds(10))
}
