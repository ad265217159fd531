import Blobs

/// How much of a source that can be read only once is kept, so that bytes that have not arrived can be sent again.
public struct SpoolOptions: Sendable, Hashable {
  /// Bytes per upload that the server has not confirmed, which also limits the size of a part. Default: 12 MiB; 32 MiB
  /// for a pipe in numbered parts.
  public var memory: Int {
    get { chosen ?? 12 << 20 }
    set { chosen = newValue }
  }
  private var chosen: Int?
  /// Folder for a temporary file without a name, which takes what does not fit into memory; nil: nothing is written to
  /// disk, and only the last `memory` bytes of a source can be sent again.
  public var folder: BytePath?

  /// Creates options. `memory` is in bytes, at least 2; nil: the default. `folder` nil: nothing is written to disk.
  public init(memory: Int? = nil, folder: BytePath? = nil) {
    if let memory { precondition(memory >= 2) }
    chosen = memory
    self.folder = folder
  }

  /// If the server does not accept smaller parts, and parts have no numbers, the spool must hold at least one part,
  /// because an incomplete part must be sent again. For numbered parts see `PipePlan`.
  mutating func holdPart(of destination: UploadDestination) {
    let limits = destination.limits
    guard !destination.traits.numbersParts, !limits.needsLength, limits.smallest <= Self.largestPart else { return }
    memory = max(memory, Int(limits.smallest))
  }

  /// If a server requires larger parts than this, the spool does not grow beyond what the user asked for.
  private static let largestPart: Int64 = 12 << 20

  /// For a pipe in numbered parts: the number of parts is limited, so they are large.
  var forNumberedParts: SpoolOptions { SpoolOptions(memory: chosen ?? 32 << 20, folder: folder) }
}

/// A source as an upload reads it. If it is sequential, the bytes that the server has not acknowledged are kept.
final class SpooledSource: Sendable {
  /// The source for slices.
  let source: any BlobSource
  /// The version of the source that is uploaded.
  let info: BlobInfo
  /// nil for a source with random access.
  private let spool: Spool?
  /// Bytes that do not fit into memory are kept on disk until the server has confirmed them.
  private let isOnDisk: Bool

  init(_ source: any BlobSource, _ info: BlobInfo, _ options: SpoolOptions) {
    self.info = info
    isOnDisk = options.folder != nil
    switch source.access {
    case .random: (self.source, spool) = (source, nil)
    case .sequential:
      var spool = source as? Spool ?? Spool(source, memory: options.memory, spillingInto: options.folder)
      spool.patience = .seconds(5)
      (self.source, self.spool) = (spool, spool)
    }
  }

  /// The whole source.
  var whole: BlobSlice { BlobSlice(source, length: info.length, validator: info.validator) }

  /// Whether checksums of the sent bytes are recorded. Otherwise only their offset is recorded.
  var isTraced: Bool { info.length != nil && info.wantsTrace && source.access == .random }

  /// Bytes that are no longer kept cannot be read again.
  var isReadOnce: Bool { spool != nil }

  /// The maximum length of a part that can certainly be sent again; nil: no limit.
  var largestPart: Int64? { spool.map { Int64($0.memory) } }

  /// Bytes that can be read from `offset` while all unconfirmed bytes stay in memory; 0: none until more bytes are
  /// confirmed.
  func room(at offset: Int64) -> Int64 {
    guard let spool else { return .max }
    return spool.held.lowerBound + Int64(spool.memory) - offset
  }

  /// Offset of the first byte that can still be sent.
  var first: Int64 { spool?.held.lowerBound ?? 0 }

  /// The first `length` bytes have been read, and each can be read again from the spool.
  func holds(_ length: Int64) -> Bool {
    guard let spool else { return false }
    return spool.held.lowerBound == 0 && spool.held.upperBound >= length && length <= spool.memory
  }

  /// The error for an upload that can neither continue nor start again, because of `what`: it needs bytes that are no
  /// longer kept. It has no status and no transport error, because the advice for those does not help here.
  func lost(_ what: String, cause: UploadError?) -> UploadError {
    // On disk, everything that the server has not confirmed is kept, and nothing helps against a server that loses
    // confirmed bytes.
    let advice =
      isOnDisk
      ? "what is before that, the server had said that it holds"
      : "with --spool-dir FOLDER all that the server has not said to hold is kept on disk, and can be sent again; tus+, "
        + "resumable+ and s3:// go on where they were cut"
    return UploadError(
      .giveUp, .file, "\(what), since the source is read once, and is held from byte \(first) on only: \(advice)",
      cause: cause)
  }

  /// The server asks for bytes that it had confirmed.
  func lost(from offset: Int64, cause: UploadError? = nil) -> UploadError {
    lost("the server has lost what it had after byte \(offset); it cannot go on from there", cause: cause)
  }

  /// The server has everything before `offset`.
  func acknowledge(_ offset: Int64) { spool?.release(upTo: offset) }

  /// Reads up to `count` bytes ahead from `offset`, and returns how many there are: fewer only if the source ends. The
  /// bytes are kept as far as there is room. Waits for the source.
  func look(from offset: Int64, _ count: Int64, _ validator: Validator?) async throws(UploadError) -> Int64 {
    let cancel = Cancellation()
    let result = await withTaskCancellationHandler {
      await Self.threads.run { () -> Result<Int64, BlobError> in
        do throws(BlobError) { return .success(try self.read(from: offset, count, validator, cancel)) } catch {
          return .failure(error)
        }
      }
    } onCancel: {
      cancel.cancel()
    }
    do { return try result.get() } catch { throw UploadError(error) }
  }

  /// Advances to `offset` in a source that an earlier run has read: the bytes before it have arrived.
  func skip(to offset: Int64, _ validator: Validator?) async throws(UploadError) {
    guard let spool, case let end = spool.held.upperBound, end < offset else { return }
    let passed = try await look(from: end, offset - end, validator)
    spool.release(upTo: end + passed)
  }

  /// Drops the kept bytes, to read the source again from its first byte. false: the source cannot be read again.
  func rewind() async -> Bool {
    guard let spool else { return true }
    let cancel = Cancellation()
    return await withTaskCancellationHandler {
      await Self.threads.run {
        // The reason does not matter: the caller reports the failure that made the rewind necessary.
        do throws(BlobError) { try spool.rewind(cancel) } catch { return false }
        return true
      }
    } onCancel: {
      cancel.cancel()
    }
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

  /// These sources are slow, and the shared threads are for short calls.
  private static let threads = BlockingPool("fullbore-spool", threads: 16, patience: .seconds(10))
}
