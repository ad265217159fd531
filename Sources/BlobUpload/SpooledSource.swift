import Blobs

/// How much of a source that is read once is held, so that what did not arrive can be sent again.
public struct SpoolOptions: Sendable, Hashable {
  /// Bytes for each upload: those that the server has not vouched for, so a part has at most as many. Unless it is set,
  /// 12 MiB, and for a pipe to where parts are counted, 32 MiB.
  public var memory: Int {
    get { chosen ?? 12 << 20 }
    set { chosen = newValue }
  }
  private var chosen: Int?
  /// Where what does not fit goes, in a temporary file without a name; nil: nothing is written to disk, and a source
  /// can be sent again only from the last `memory` bytes on.
  public var folder: BytePath?

  public init(memory: Int? = nil, folder: BytePath? = nil) {
    if let memory { precondition(memory >= 2) }
    chosen = memory
    self.folder = folder
  }

  /// Where the server takes no smaller parts, and parts have no numbers, one is held at least: what has not arrived of it must
  /// be sent again. `PipePlan` says what holds for numbered parts.
  mutating func holdPart(of destination: UploadDestination) {
    let limits = destination.limits
    guard !destination.traits.numbersParts, !limits.needsLength, limits.smallest <= Self.largestPart else { return }
    memory = max(memory, Int(limits.smallest))
  }

  /// A server that wants more than that in a part is not given more memory than was asked for.
  private static let largestPart: Int64 = 12 << 20

  /// For a pipe in numbered parts, of which there are only so many: they are large.
  var forNumberedParts: SpoolOptions { SpoolOptions(memory: chosen ?? 32 << 20, folder: folder) }
}

/// A source as an upload reads it: where it is sequential, with the bytes held that the server has not acknowledged.
final class SpooledSource: Sendable {
  /// What slices are made of.
  let source: any BlobSource
  /// The version of the source that is uploaded.
  let info: BlobInfo
  /// nil where any byte can be read at any time.
  private let spool: Spool?
  /// What does not fit into memory is held on disk, until the server has vouched for it.
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

  /// All that is to be uploaded.
  var whole: BlobSlice { BlobSlice(source, length: info.length, validator: info.validator) }

  /// Bytes that are not held any more cannot be read again.
  var isReadOnce: Bool { spool != nil }

  /// Bytes that a part may have to be sure that it can be sent again; nil: any.
  var largestPart: Int64? { spool.map { Int64($0.memory) } }

  /// Bytes that can be read from `offset` on while all that is in doubt stays held; 0: none, before more has arrived.
  func room(at offset: Int64) -> Int64 {
    guard let spool else { return .max }
    return spool.held.lowerBound + Int64(spool.memory) - offset
  }

  /// The first byte that can be sent.
  var first: Int64 { spool?.held.lowerBound ?? 0 }

  /// All `length` bytes have been read, and each can be read again without asking for room.
  func holds(_ length: Int64) -> Bool {
    guard let spool else { return false }
    return spool.held.lowerBound == 0 && spool.held.upperBound >= length && length <= spool.memory
  }

  /// The end of an upload that cannot go on, nor begin anew, because of `what`: it would need bytes that are not held any
  /// more. It carries no status and no transport's error: what helps against those does not help here.
  func lost(_ what: String, cause: UploadError?) -> UploadError {
    // On disk all is held but what the server had vouched for, and nothing helps against a server that loses that.
    let advice =
      isOnDisk
      ? "what is before that, the server had said that it holds"
      : "with --spool-dir FOLDER all that the server has not said to hold is kept on disk, and can be sent again; tus+, "
        + "resumable+ and s3:// go on where they were cut"
    return UploadError(
      .giveUp, .file, "\(what), since the source is read once, and is held from byte \(first) on only: \(advice)",
      cause: cause)
  }

  /// The server wants again what it had vouched for.
  func lost(from offset: Int64, cause: UploadError? = nil) -> UploadError {
    lost("the server has lost what it had after byte \(offset); it cannot go on from there", cause: cause)
  }

  /// The server has everything before `offset`.
  func acknowledge(_ offset: Int64) { spool?.release(upTo: offset) }

  /// Reads `count` bytes ahead, from `offset` on, and returns how many there are: fewer only where the source ends.
  /// What is read is held, as far as there is room. Waits for the source.
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

  /// Goes to `offset` in a source that an earlier run had read so far: what is before it has arrived.
  func skip(to offset: Int64, _ validator: Validator?) async throws(UploadError) {
    guard let spool, case let end = spool.held.upperBound, end < offset else { return }
    let passed = try await look(from: end, offset - end, validator)
    spool.release(upTo: end + passed)
  }

  /// Lets go of what is held, to read the source from its first byte once more. false: nobody can read that again.
  func rewind() async -> Bool {
    guard let spool else { return true }
    let cancel = Cancellation()
    return await withTaskCancellationHandler {
      await Self.threads.run {
        // Why not does not matter: the failure that made it necessary is what is told.
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

  /// Sources of this kind are slow: the shared threads are for short calls.
  private static let threads = BlockingPool("fullbore-spool", threads: 16, patience: .seconds(10))
}
