import BlobHTTP
import Blobs
import Synchronization

/// Decides when a server is asked whether it has a file already, before the file is sent.
///
/// Only a server is asked that tells digests, as Fullbore's own does: any other could answer with a length at best. A large
/// file is always asked for, since one request more is nothing beside its bytes. A file of medium size is asked for only
/// while the server is found to have such files, as it does where a tree is pushed again with a new journal: a push of new
/// files pays nothing. A small file is as cheap to send as to ask for; the server compares it, and says that it had it.
final class ExistingFiles: Sendable {
  /// Bytes. Up to `small` a file is never asked for, and over `large` always.
  static let (small, large): (Int64, Int64) = (64 << 10, 4 << 20)

  private let tellsDigests = Atomic(false)
  private let wasThere = Atomic(false)

  /// Whether to ask for a file before it is sent.
  func isAskedFirst(_ length: Int64, _ target: UploadTarget) -> Bool {
    guard length > Self.small, tells, !target.overwrite else { return false }
    return length > Self.large || wasThere.load(ordering: .relaxed)
  }

  /// Whether the server can be asked for digests.
  var tells: Bool { tellsDigests.load(ordering: .relaxed) }

  func note(tellsDigests tells: Bool) { tellsDigests.store(tells, ordering: .relaxed) }

  /// Whether the server had the last file before it was sent. Called for every file: writes only what has changed.
  func note(wasThere now: Bool) {
    if wasThere.load(ordering: .relaxed) != now { wasThere.store(now, ordering: .relaxed) }
  }
}

/// How it is known that the server has a file that was sent by an earlier run.
public enum StoredEvidence: Sendable, Hashable {
  /// The journal says so; the server was not asked.
  case journal
  /// The server has a file of that name and length.
  case length
  /// The server tells a digest, which is that of the source.
  case digest
  /// It was read back, and has the bytes of the source.
  case bytes
}

extension UploadEngine {
  /// The upload as a finished one, where the server has the same bytes under the name; nil: it has not, or cannot tell.
  func existing(
    _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget
  ) async throws(UploadError) -> UploadResult? {
    guard let length = info.length, uploader.destination.acquaintance.existing.isAskedFirst(length, target) else {
      return nil
    }
    let whole = BlobSlice(source, length: length, validator: info.validator)
    guard try await context().hasSameBytes(as: whole, at: target.url) == true else {
      uploader.destination.acquaintance.existing.note(wasThere: false)
      return nil
    }
    uploader.destination.acquaintance.existing.note(wasThere: true)
    return UploadResult(location: target.url.description, length: length, isCompared: true)
  }
}

extension Uploader {
  /// As `isThere`, where the source can be compared; nil: the server has the file no more, or has other bytes.
  func evidence(
    of source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget, location: String?
  ) async throws(UploadError) -> StoredEvidence? {
    if try await !isThere(target, location: location) { return nil }
    let whole = BlobSlice(source, length: info.length, validator: info.validator)
    let isSame = try await patiently("\(target.path)") { () async throws(UploadError) in
      try await destination.dialect.hasSameBytes(as: whole, target, context())
    }
    guard let isSame else { return .length }
    return isSame ? .digest : nil
  }
}

extension UploadContext {
  /// HEAD with `Want-Repr-Digest`: whether there are the bytes of `whole`, which is read for it. nil: there is nothing, or the
  /// server tells no digest, or takes too long for it, or `whole` cannot be read twice. RFC 9530.
  public func hasSameBytes(as whole: BlobSlice, at url: HTTPURL) async throws(UploadError) -> Bool? {
    guard whole.canBeReadTwice else { return nil }
    let response: HTTPResponse
    do throws(UploadError) {
      response = try await send(HTTPRequest("HEAD", url, ["Want-Repr-Digest": "sha-256=1"]))
    } catch {
      // The upload, or the next question, meets the same and knows what to do.
      if error.side == .cancelled { throw error }
      return nil
    }
    guard response.status == 200, response.headers["Content-Encoding"] == nil else { return nil }
    if let size = response.headers.bytes("Content-Length"), let length = whole.length, size != length { return false }
    guard let told = response.headers["Repr-Digest"].flatMap({ DigestField.values($0) })?.first else { return nil }
    return try await digests(of: whole, [told.key], noteRead: server.compared)[0] == told.value
  }
}
