import BlobHTTP
import Blobs

/// tus 1.0 §Checksum.
extension UploadProtocol {
  /// Every body is read for its digest before it is sent.
  var digestsBodies: Bool {
    ((self as? Tus)?.checksum ?? (self as? IETFResumable)?.checksum ?? (self as? PlainPut)?.checksum) != nil
  }
}

extension Tus {
  /// A part is read once for its digest and once to be sent: bounded, what was read is still in the system's cache.
  static let usualChecked: Int64 = 8 << 20

  /// Throws when a checksum is wanted that the server does not offer.
  func checkOffer(_ headers: HTTPHeaders, at endpoint: HTTPURL) throws(UploadError) {
    guard let checksum else { return }
    let offered = headers.list("Tus-Extension").contains("checksum") ? headers.list("Tus-Checksum-Algorithm") : []
    if offered.contains(checksum.name) { return }
    let ours = Digest.Algorithm.all.map(\.name).joined(separator: ", ")
    let theirs = offered.isEmpty ? "none" : offered.joined(separator: ", ")
    throw UploadError(
      .giveUp, .destination,
      "\(endpoint): the checksum \(checksum) was asked for, of \(ours); the server offers \(theirs)")
  }

  /// The field for a body, which is read for it; nil when none is wanted or the body cannot be read twice.
  func uploadChecksum(of body: BlobSlice) async throws(UploadError) -> String? {
    guard let checksum, body.length != nil, body.source.access == .random || body.source is Spool else { return nil }
    let cancel = Cancellation()
    var body = body
    // Only what is sent is slowed down.
    if let throttled = body.source as? ThrottledSource { body.source = throttled.source }
    let result = await withTaskCancellationHandler { [body] in
      await Self.threads.run { () -> Result<[UInt8], BlobError> in
        do throws(BlobError) { return .success(try digest(of: body, checksum, cancel)) } catch {
          return .failure(error)
        }
      }
    } onCancel: {
      cancel.cancel()
    }
    switch result {
    case .success(let value): return "\(checksum) \(base64(value))"
    case .failure(let error): throw UploadError(error)
    }
  }

  /// A source may be slow: the shared threads are for short calls.
  private static let threads = BlockingPool("fullbore-digest", threads: 4)
}

private func digest(
  of body: BlobSlice, _ algorithm: Digest.Algorithm, _ cancel: Cancellation
) throws(BlobError) -> [UInt8] {
  let digest = Digest(algorithm)
  let reader = try body.open(cancel)
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 16)
  defer { buffer.deallocate() }
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { return digest.value() }
    digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
  }
}
