import BlobCrypto
import Blobs
import Synchronization

/// Computes the digests of a body, which is read once for them, on a thread that may block. `noteRead` is called with
/// the byte count of each read.
func digests(
  of body: BlobSlice, _ algorithms: [Digest.Algorithm], noteRead: @escaping @Sendable (Int) -> Void = { _ in }
) async throws(UploadError) -> [[UInt8]] {
  // The bytes that an earlier run sealed cannot be read again.
  if body.start == 0, let sealed = body.source as? SealedUpload, let known = sealed.digests(algorithms) { return known }
  return try await readingSource { cancel, note throws(BlobError) in
    try digests(of: body, algorithms, cancel) { count in
      note(count)
      noteRead(count)
    }
  }
}

/// Maximum time for which reading a source may return no bytes, if the bytes are not being sent.
package let longestRead = Duration.seconds(300)

/// Runs `body`, which reads a source, on a thread that may block forever, for example on a file of an unreachable
/// server.
///
/// Returns as soon as the task is cancelled, or the source has returned no bytes for `longest`: `body` calls its second
/// argument with the byte count of each read. The blocked thread delays no other call.
package func readingSource<Result: Sendable>(
  longest: Duration = longestRead,
  _ body: @escaping @Sendable (Cancellation, _ noteRead: @Sendable (Int) -> Void) throws(BlobError) -> Result
) async throws(UploadError) -> Result {
  typealias Outcome = Swift.Result<Result, BlobError>
  let read = ReadBytes()
  let outcome = await withTaskGroup(of: Outcome.self) { group in
    group.addTask {
      let outcome = await threads.runUntilCancelled { cancel in
        Outcome { () throws(BlobError) in
          try body(cancel) { read.bytes.add(Int64($0), ordering: .relaxed) }
        }
      }
      return outcome ?? .failure(BlobError(.cancelled, "read a source: cancelled"))
    }
    group.addTask {
      var before: Int64 = -1
      var quiet = Duration.zero
      let step = min(longest, longestSleep)
      while quiet < longest {
        // The sleep is cancelled once the source was read.
        do { try await Task.sleep(for: step) } catch { break }
        let now = read.bytes.load(ordering: .relaxed)
        quiet = now == before ? quiet + step : .zero
        before = now
      }
      let message =
        "nothing could be read for \(longest) after \(max(0, before)) bytes: is the disk or its server gone?"
      return .failure(BlobError(.io, message))
    }
    let first = await group.next()!
    group.cancelAll()
    return first
  }
  if Task.isCancelled { throw UploadError(BlobError(.cancelled, "read a source: cancelled")) }
  do { return try outcome.get() } catch { throw UploadError(error) }
}

/// A task that is cancelled while it sleeps keeps some memory until the sleep would have ended. With short sleeps, only
/// recent reads hold such memory, however many files are read in total.
private let longestSleep = Duration.milliseconds(100)

private final class ReadBytes: Sendable {
  let bytes = Atomic<Int64>(0)
}

extension BlobSlice {
  /// The algorithm of the digest that is compared with one of the server.
  var digestToCompare: Digest.Algorithm { (source as? SealedUpload)?.recalledAlgorithm ?? .sha256 }

  /// Whether the slice can be read for a digest, and then again to be sent.
  var canBeReadTwice: Bool {
    guard let length else { return false }
    if source.access == .random { return true }
    guard let spool = source as? Spool else { return false }
    let held = spool.held
    return held.lowerBound <= start && (length <= spool.memory || start.addingClamped(length) <= held.upperBound)
  }
}

// A source may be slow or stuck. There are as many threads as running files, because a few would let such sources delay
// all others.
private let threads = BlockingPool("fullbore-digest", threads: 64, patience: .seconds(10))

/// Computes the digests on the calling thread. `noteRead` is called with the byte count of each read.
func digests(
  of body: BlobSlice, _ algorithms: [Digest.Algorithm], _ cancel: Cancellation, _ noteRead: (Int) -> Void = { _ in }
) throws(BlobError) -> [[UInt8]] {
  let digests = algorithms.map { Digest($0) }
  let reader = try body.open(cancel)
  // The buffer is no larger than needed, because the system reclaims large allocations immediately.
  let size = max(1, min(128 << 10, Int(clamping: body.length ?? .max)))
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
  defer { buffer.deallocate() }
  while true {
    try cancel.check("read a source for its checksum")
    let count = try reader.read(into: buffer)
    if count == 0 { return digests.map { $0.value() } }
    noteRead(count)
    for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
  }
}
