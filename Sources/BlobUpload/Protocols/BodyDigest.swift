import Blobs

/// The digests of a body, which is read for them once, on a thread that may block.
func digests(of body: BlobSlice, _ algorithms: [Digest.Algorithm]) async throws(UploadError) -> [[UInt8]] {
  let cancel = Cancellation()
  let result = await withTaskCancellationHandler {
    await threads.run { Result { () throws(BlobError) in try digests(of: body, algorithms, cancel) } }
  } onCancel: {
    cancel.cancel()
  }
  switch result {
  case .success(let values): return values
  case .failure(let error): throw UploadError(error)
  }
}

extension BlobSlice {
  /// For a digest, and then to be sent.
  var canBeReadTwice: Bool {
    guard let length else { return false }
    if source.access == .random { return true }
    guard let spool = source as? Spool else { return false }
    let held = spool.held
    return held.lowerBound <= start && (length <= spool.memory || start + length <= held.upperBound)
  }
}

// A source may be slow: the shared threads are for short calls.
private let threads = BlockingPool("fullbore-digest", threads: 4)

/// The same, on the thread that calls.
func digests(
  of body: BlobSlice, _ algorithms: [Digest.Algorithm], _ cancel: Cancellation
) throws(BlobError) -> [[UInt8]] {
  var body = body
  // Only what is sent is slowed down.
  if let throttled = body.source as? ThrottledSource { body.source = throttled.source }
  let digests = algorithms.map { Digest($0) }
  let reader = try body.open(cancel)
  // No larger than it need be: the system takes back what is large at once.
  let size = max(1, min(128 << 10, Int(clamping: body.length ?? .max)))
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
  defer { buffer.deallocate() }
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { return digests.map { $0.value() } }
    for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
  }
}
