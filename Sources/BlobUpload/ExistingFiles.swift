import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// Decides whether the server is queried for a file before the file is sent.
///
/// Only servers that return digests are queried, as Fullbore's own server does: any other could report a length at
/// best. The server is always queried for a large file, because one more request costs little compared with its bytes.
/// It is queried for a file of medium size only while it is found to have such files, as when a tree is pushed again
/// with a new journal. A push of new files therefore costs nothing extra. A small file is as cheap to send as to query;
/// the server compares it, and reports that it had the file.
final class ExistingFiles: Sendable {
  /// Bytes. The server is never queried for a file of up to `small`, and always for one over `large`.
  static let (small, large): (Int64, Int64) = (64 << 10, 4 << 20)

  private let tellsDigests = Atomic(false)
  private let tellsXXH128 = Atomic(false)
  private let wasThere = Atomic(false)
  let queries = QueryMethod()

  /// Whether the server is queried for a file before the file is sent.
  func isAskedFirst(_ length: Int64?, _ target: UploadTarget) -> Bool {
    guard let length, length > Self.small, mayBeAsked(target) else { return false }
    return length > Self.large || wasThere.load(ordering: .relaxed)
  }

  /// Whether the server can tell by a digest if it has the file, and the file would not replace another one.
  func mayBeAsked(_ target: UploadTarget) -> Bool { tells && !target.overwrite }

  /// Whether the server returns digests on request.
  var tells: Bool { tellsDigests.load(ordering: .relaxed) }

  /// The digest that is kept of the ciphertext of a sealed file, to be compared later with what the server tells; nil: it
  /// tells none. SHA-256 takes longer than the encryption. The digest detects damage, and no server that lies, which
  /// could tell the digest of other bytes whatever the algorithm.
  var digestOfSealed: Digest.Algorithm? {
    if !tells { return nil }
    return tellsXXH128.load(ordering: .relaxed) ? .xxh128 : .sha256
  }

  /// `offered`: the digests that the server computes of stored files, in addition to that of SHA-256.
  func note(tellsDigests tells: Bool, offered: [DigestAlgorithm] = []) {
    tellsDigests.store(tells, ordering: .relaxed)
    let isKnown = Digest.Algorithm(DigestAlgorithm.xxh128.name) != nil
    tellsXXH128.store(isKnown && offered.contains(.xxh128), ordering: .relaxed)
  }

  /// Notes whether the server had the last file before it was sent. Called for every file, so it writes only if the
  /// value changes.
  func note(wasThere now: Bool) {
    if wasThere.load(ordering: .relaxed) != now { wasThere.store(now, ordering: .relaxed) }
  }
}

/// The evidence that the server has a file which an earlier run sent.
public enum StoredEvidence: Sendable, Hashable {
  /// The journal says so; the server was not queried.
  case journal
  /// The server has a file of that name and length.
  case length
  /// The server returns a digest that is equal to the digest of the source.
  case digest
  /// The file was read back and has the same bytes as the source.
  case bytes
}

extension Uploader {
  /// Like `isThere`, and compares digests if possible; nil: the server no longer has the file, or has other bytes.
  func evidence(
    of source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget, location: String?
  ) async throws(UploadError) -> StoredEvidence? {
    if try await !isThere(target, location: location) { return nil }
    let whole = BlobSlice(source, length: info.length, validator: info.validator)
    let isSame = try await patiently("\(target.path)") { () async throws(UploadError) in
      try await destination.uploadProtocol.hasSameBytes(as: whole, target, context())
    }
    guard let isSame else { return .length }
    return isSame ? .digest : nil
  }
}

extension UploadContext {
  /// Sends HEAD with `Want-Repr-Digest` and compares the digest with that of `whole`, which is read for it, or is known of
  /// a sealed file that an earlier run has sent. nil: the
  /// file does not exist, the server returns no digest or takes too long for one, or `whole` cannot be read twice. RFC
  /// 9530.
  public func hasSameBytes(as whole: BlobSlice, at url: HTTPURL) async throws(UploadError) -> Bool? {
    guard whole.canBeReadTwice else { return nil }
    let wanted = whole.digestToCompare
    let response: HTTPResponse
    do throws(UploadError) {
      response = try await send(HTTPRequest("HEAD", url, ["Want-Repr-Digest": DigestField.wish(wanted)]))
    } catch {
      // The upload, or the next query, fails for the same reason and handles the error.
      if error.side == .cancelled { throw error }
      return nil
    }
    guard response.status == 200, response.headers["Content-Encoding"] == nil else { return nil }
    if let size = response.headers.bytes("Content-Length"), let length = whole.length, size != length { return false }
    let values = response.headers["Repr-Digest"].flatMap { DigestField.values($0, DigestField.registered + [wanted]) }
    guard let told = values?.first(where: { $0.key == wanted }) ?? values?.first else { return nil }
    return try await digests(of: whole, [told.key], noteRead: server.compared)[0] == told.value
  }
}
