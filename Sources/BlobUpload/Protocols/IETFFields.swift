import BlobHTTP
import Blobs
import Platform
import Synchronization

// Fields of IETF resumable uploads that the client reads. draft-ietf-httpbis-resumable-upload §4.

extension IETFResumable {
  /// With digests a part is read twice, so its size is limited to what the system's cache still holds.
  func bounded(_ limits: PartLimits) -> PartLimits {
    var limits = limits
    if checksum != nil { limits.usual = Tus.usualChecked }
    return limits
  }

  /// A file that is sent with its creation can be resumed by the system's transport.
  public func withFileBodies(upTo most: Int64, _ limits: PartLimits) -> UploadOffer? {
    var (resumable, limits) = (self, limits)
    (resumable.wholeUpTo, limits.firstPart) = (most, most)
    return UploadOffer(resumable, limits)
  }

  /// The limits from a response to OPTIONS; nil if it does not offer resumable uploads.
  func limits(from headers: HTTPHeaders) -> PartLimits? {
    guard var limits = headers.uploadLimits else { return nil }
    limits.firstPart = min(wholeUpTo, limits.largest ?? .max)
    return limits
  }
}

extension HTTPHeaders {
  /// `Upload-Limit`; nil if the field is missing or not a dictionary.
  var uploadLimit: UploadLimit? { StructuredField.integers(self["Upload-Limit"]).map { UploadLimit(fields: $0) } }

  var uploadLimits: PartLimits? { uploadLimit?.parts }
}

/// The members of `Upload-Limit`. Impossible limits are ignored: the server's later responses show what it means.
struct UploadLimit {
  let fields: [String: Int64]

  var parts: PartLimits {
    func limit(_ name: String, atLeast least: Int64) -> Int64? { fields[name].flatMap { $0 < least ? nil : $0 } }
    let largest = limit("max-append-size", atLeast: 1)
    let smallest = limit("min-append-size", atLeast: 1) ?? 1
    return PartLimits(
      smallest: smallest <= largest ?? .max ? smallest : 1, largest: largest, total: limit("max-size", atLeast: 0))
  }

  /// Seconds since 1970, from the remaining lifetime.
  var expires: Int64? { fields["max-age"].map { currentSeconds() + $0 } }
}

/// The session of an upload that an interim response announced. Set on a thread of the transport.
final class AnnouncedSession: Sendable {
  let session = Mutex<UploadSession?>(nil)
}
