import Synchronization

/// The bytes of a source as an asynchronous sequence of buffers, read on threads that may block.
///
/// The sequence reads a buffer only when the consumer asks for it and never reads ahead, so a slow consumer slows the
/// reading. The sequence ends where the slice ends. A short or changed source is an error, as with `BlobSlice`.
/// Cancelling the task ends a wait with `.cancelled`. Each iteration opens the source anew.
public struct BlobBuffers: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = BlobError

  private let slice: BlobSlice
  private let size: Int

  /// Each buffer has at least one and at most `size` bytes.
  public init(_ slice: BlobSlice, size: Int = 256 << 10) {
    precondition(size > 0)
    self.slice = slice
    self.size = size
  }

  public func makeAsyncIterator() -> Iterator { Iterator(pass: Pass(slice, size)) }

  /// Reads one buffer after another. Each iterator opens the source for itself.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let pass: Pass

    public func next() async throws(BlobError) -> [UInt8]? {
      try await next(isolation: nil)
    }

    public func next(isolation actor: isolated (any Actor)?) async throws(BlobError) -> [UInt8]? {
      try await pass.next()
    }
  }
}

extension BlobSource {
  /// The bytes from `offset` to the end as an asynchronous sequence of buffers of at most `size` bytes.
  public func buffers(from offset: Int64 = 0, size: Int = 256 << 10) -> BlobBuffers {
    BlobBuffers(BlobSlice(self, start: offset), size: size)
  }
}

/// One iteration over the slice.
private final class Pass: @unchecked Sendable {
  // `isBusy` ensures that only one thread at a time uses `reader` and `hasEnded`.
  private let isBusy = Atomic(false)
  private var reader: (any BlobReader)?
  private var hasEnded = false
  private let slice: BlobSlice
  private let size: Int
  private let cancel = Cancellation()

  /// The limit of 64 threads bounds how many slow sources are read at once: a stalled source blocks its thread.
  private static let threads = BlockingPool("blob-buffers", threads: 64, patience: .seconds(5))

  init(_ slice: BlobSlice, _ size: Int) {
    self.slice = slice
    self.size = size
  }

  deinit {
    // Freeing the reader may block, so the pool frees it, on a thread that may block.
    guard let reader else { return }
    nonisolated(unsafe) let last = reader
    self.reader = nil
    Self.threads.submit { withExtendedLifetime(last) {} }
  }

  func next() async throws(BlobError) -> [UInt8]? {
    let result: Result<[UInt8]?, BlobError> = await withTaskCancellationHandler {
      do throws(BlobError) {
        return .success(try await Self.threads.run { () throws(BlobError) in try self.read() })
      } catch {
        return .failure(error)
      }
    } onCancel: {
      cancel.cancel()
    }
    return try result.get()
  }

  private func read() throws(BlobError) -> [UInt8]? {
    if isBusy.exchange(true, ordering: .acquiring) {
      throw BlobError(.unsupported, "two tasks ask one iterator for its next buffer")
    }
    defer { isBusy.store(false, ordering: .releasing) }
    if hasEnded { return nil }
    // Set before the read so that it also stays set after a throw: a reader's output after a throw is meaningless.
    hasEnded = true
    if reader == nil { reader = try slice.open(cancel) }
    let buffer = try fill(from: reader!)
    if buffer.isEmpty { return nil }
    hasEnded = false
    return buffer
  }

  private func fill(from reader: any BlobReader) throws(BlobError) -> [UInt8] {
    var failure: BlobError?
    let buffer = [UInt8](unsafeUninitializedCapacity: size) { memory, count in
      do throws(BlobError) { count = try reader.read(into: UnsafeMutableRawBufferPointer(memory)) } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return buffer
  }
}
