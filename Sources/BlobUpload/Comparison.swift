import BlobCrypto
import BlobHTTP
import Blobs
import Platform
import Synchronization

/// The content that an upload must have at the server.
enum ExpectedContent: Sendable {
  case bytes(of: BlobSlice)
  /// The digest of a source, computed while it was sent.
  case digest([UInt8], Digest.Algorithm)
  /// The plaintext of a sealed file, which one of the identities opens.
  case sealed(of: BlobSlice, with: [SealIdentity])
}

/// The bytes that have arrived of a file that is read back.
private struct Arrived {
  var count: Int64 = 0
  /// The version of the file, and its length; nil: the rest cannot be asked for.
  var facts: RemoteFacts?
}

/// Compares received bytes with the expected content. One worker's thread at a time calls `take`.
final class Comparison: @unchecked Sendable {
  // `lock` guards all properties below. It is held while the source is read; no other thread waits for it.
  private let lock = Mutex(())
  private let expected: ExpectedContent
  let url: HTTPURL
  private var reader: (any BlobReader)?
  private let digest: Digest
  /// nil: the file is not sealed.
  private var opener: SealOpener?
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var offset: Int64 = 0
  private var found: UploadError?
  private var arrived = Arrived()
  /// Ends the opening and the reading of the source.
  let cancel = Cancellation()

  init(_ expected: ExpectedContent, _ url: HTTPURL) {
    self.expected = expected
    if case .digest(_, let algorithm) = expected { digest = Digest(algorithm) } else { digest = Digest(.sha256) }
    self.url = url
    opener = Self.opener(expected)
  }

  private static func opener(_ expected: ExpectedContent) -> SealOpener? {
    if case .sealed(_, let identities) = expected { SealOpener(with: identities) } else { nil }
  }

  deinit { buffer.deallocate() }

  var difference: UploadError? { lock.withLock { _ in found } }

  /// The bytes that have arrived since the comparison began, or was begun again.
  var received: Int64 { lock.withLock { _ in arrived.count } }

  /// The fields that ask for the bytes which have not arrived, of the same version; nil: all are asked for.
  var fieldsForRest: HTTPHeaders? {
    lock.withLock { _ in
      guard arrived.count > 0, let version = arrived.facts?.version else { return nil }
      var fields = version.condition
      fields["Range"] = "bytes=\(arrived.count)-"
      return fields
    }
  }

  /// Whether the server has given a part, and not all of the bytes after it.
  var lacksBytes: Bool { lock.withLock { _ in arrived.facts?.length.map { arrived.count < $0 } ?? false } }

  /// Call with the head of each response that has content, before the content. Throws if the content is another part, or a
  /// part of another version, than was asked for; what has arrived is then forgotten.
  func begin(_ head: HTTPHead) throws(BlobError) {
    if isRest(head, from: received) { return }
    let isPart = RemoteFacts(head, of: url)?.isPartial ?? (head.status == 206)
    beginAgain()
    if isPart {
      throw BlobError(.io, "GET \(url): its answer \(head.status) has other bytes than those that were asked for")
    }
    lock.withLock { _ in arrived.facts = RemoteFacts(head, of: url, isOfRange: false) }
  }

  /// Whether a response has the bytes from `offset` on of the version of which the bytes before have arrived. Servers that
  /// do not heed `If-Range` give a part of the version that is there now. RFC 9110 §14.4, §15.3.7.
  func isRest(_ head: HTTPHead, from offset: Int64) -> Bool {
    guard offset > 0, let facts = RemoteFacts(head, of: url), facts.isPartial, facts.start == offset else {
      return false
    }
    return lock.withLock { _ in
      guard let known = arrived.facts, facts.version == known.version,
        known.length == nil || facts.length == known.length
      else { return false }
      arrived.facts?.length = facts.length
      return true
    }
  }

  /// Forgets what has arrived: all is compared from the first byte.
  func beginAgain() {
    lock.withLock { _ in
      if arrived.count == 0 { return }
      (reader, offset, arrived) = (nil, 0, Arrived())
      digest.reset()
      opener = Self.opener(expected)
    }
  }

  func take(_ bytes: UnsafeRawBufferPointer) throws(BlobError) {
    let error: BlobError? = lock.withLock { _ in
      arrived.count = arrived.count.addingClamped(Int64(bytes.count))
      do throws(BlobError) {
        switch expected {
        case .bytes(let slice): try compare(bytes, with: slice)
        case .digest:
          digest.update(bytes)
          offset += Int64(bytes.count)
        case .sealed(let slice, _):
          try comparePlaintext(with: slice) { opener, take throws(BlobError) in try opener.append(bytes, take) }
        }
        return nil
      } catch {
        // Bytes that could not be compared must come again, with all before them.
        arrived.facts = nil
        return error
      }
    }
    if let error { throw error }
  }

  private func compare(_ bytes: UnsafeRawBufferPointer, with slice: BlobSlice) throws(BlobError) {
    let reader = try open(slice)
    var rest = bytes
    while !rest.isEmpty {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(rest.count))
      let count = try reader.read(into: window)
      if count == 0 { throw differs("the server has more than \(offset) bytes") }
      if memcmp(window.baseAddress!, rest.baseAddress!, count) != 0 {
        throw differs("what the server has differs within \(count) bytes after byte \(offset)")
      }
      offset += Int64(count)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  /// Compares what `open` takes out of the sealed file. An error of `open` itself is one of the file at the server.
  private func comparePlaintext(
    with slice: BlobSlice,
    _ open: (SealOpener, (UnsafeRawBufferPointer) throws(BlobError) -> Void) throws(BlobError) -> Void
  ) throws(BlobError) {
    guard let opener else { return }
    var isOfSource = false
    do throws(BlobError) {
      try open(opener) { plain throws(BlobError) in
        do throws(BlobError) { try compare(plain, with: slice) } catch {
          isOfSource = true
          throw error
        }
      }
    } catch {
      if !isOfSource {
        // A file that is sealed for others may have the same plaintext: its error has a cause.
        let cause = error.code == .permission ? error : nil
        found = UploadError(.giveUp, .file, "GET \(url): \(error.message)", cause: cause)
      }
      throw error
    }
  }

  private func open(_ slice: BlobSlice) throws(BlobError) -> any BlobReader {
    let reader = if let open = self.reader { open } else { try slice.open(cancel) }
    self.reader = reader
    return reader
  }

  private func differs(_ how: String) -> BlobError {
    let message = "GET \(url): \(how)"
    found = UploadError(.giveUp, .file, message)
    return BlobError(.changed, message)
  }

  /// Call after the last received byte. Throws if bytes of the source are left, unless `mayBeShort`. Returns whether
  /// none are left. This call blocks.
  func end(mayBeShort: Bool) throws(UploadError) -> Bool {
    do throws(BlobError) {
      return try isWhole(mayBeShort)
    } catch {
      throw difference ?? UploadError(error)
    }
  }

  private func isWhole(_ mayBeShort: Bool) throws(BlobError) -> Bool {
    let result: Result<Bool, BlobError> = lock.withLock { _ in
      do throws(BlobError) {
        switch expected {
        case .bytes(let slice), .sealed(let slice, _):
          if opener != nil {
            try comparePlaintext(with: slice) { opener, take throws(BlobError) in try opener.end(take) }
          }
          if try open(slice).read(into: buffer) == 0 { return .success(true) }
          if mayBeShort { return .success(false) }
          throw differs("the server has only \(offset) bytes\(slice.length.map { " of \($0)" } ?? "")")
        case .digest(let value, let algorithm):
          if digest.value() == value { return .success(true) }
          throw differs(
            "what the server has differs: the \(algorithm) of its \(offset) bytes is not that of what was read")
        }
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}
