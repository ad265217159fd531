import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// tus 1.0 §Checksum, with checksum-trailer.
///
/// The digest is sent before the body if a second read costs next to nothing, for example of a file that is still in
/// the system's cache: a field in the header section gets through everywhere. For a pipe, a URL or a database it is
/// sent in a trailer, so that the body is read once, while it is sent.
extension Tus {
  /// A part is read once for its digest and once to be sent. This size keeps it in the system's cache in between.
  static let usualChecked: Int64 = 8 << 20

  /// Throws if a checksum is required that the server does not offer.
  func checkOffer(_ headers: HTTPHeaders, at endpoint: HTTPURL, _ with: UploadContext) throws(UploadError) {
    guard let checksum else { return }
    let offered = headers.list("Tus-Extension").contains("checksum") ? headers.list("Tus-Checksum-Algorithm") : []
    if offered.contains(checksum.name) { return }
    let ours = Digest.Algorithm.all.map(\.name).joined(separator: ", ")
    let secrets = with.secrets()
    let shown = offered.filter { !secrets.isOne(in: $0.utf8) }
    let theirs = shown.isEmpty ? "none" : shown.joined(separator: ", ")
    throw UploadError(
      .giveUp, .destination,
      "\(endpoint): the checksum \(checksum) was asked for, of \(ours); the server offers \(theirs)")
  }

  /// This protocol adapted to the server's support for checksums and deletion.
  func offered(_ headers: HTTPHeaders) -> Tus {
    var tus = self
    tus.publishesGroups = headers[UploadGroup.field] != nil
    tus.terminates = headers.list("Tus-Extension").contains("termination")
    tus.trailsChecksums = checksum != nil && headers.list("Tus-Extension").contains("checksum-trailer")
    return tus
  }

  public func withFileBodies(upTo most: Int64, _ limits: PartLimits) -> UploadOffer? {
    var (tus, limits) = (self, limits)
    tus.trailsChecksums = false
    tus.wholeUpTo = min(wholeUpTo, most)
    limits.firstPart = min(limits.firstPart, tus.wholeUpTo)
    return UploadOffer(tus, limits)
  }

  /// Sends a body with its digest, if one is needed, in the header section or in a trailer.
  func send(
    following request: inout HTTPRequest, checked body: BlobSlice?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse {
    guard let body, let checksum, trailsChecksums, !with.isLocal, body.length != 0, with.trailers.isPossible else {
      if let body { request.headers[Self.checksumField] = try await uploadChecksum(of: body) }
      let response = try await with.send(following: &request, body: body)
      if body != nil { with.trailers.judge(isRefusedToo: Self.refusals.contains(response.status)) }
      return response
    }
    let summed = SummedSource(body, checksum)
    request.headers["Trailer"] = Self.checksumField
    var on = with.reporting
    on.trailers = { [Self.checksumField: "\(checksum) \(base64(summed.value))"] }
    let response = try await with.send(following: &request, body: BlobSlice(summed, length: body.length), on)
    if Self.refusals.contains(response.status) {
      with.trailers.refuse()
      throw UploadError(
        .adapt, .destination, "\(request.method) \(request.url): \(response.summary)", status: response.status)
    }
    return response
  }

  private static let checksumField = "Upload-Checksum"
  /// Statuses of intermediaries that drop trailers, and of servers without chunked support.
  private static let refusals = [400, 411, 501]

  /// The field for a body, which is read for it; nil if no digest is needed or the body cannot be read twice.
  func uploadChecksum(of body: BlobSlice) async throws(UploadError) -> String? {
    guard let checksum, body.canBeReadTwice else { return nil }
    return "\(checksum) \(base64(try await digests(of: body, [checksum])[0]))"
  }
}

/// Whether trailers get through to a host.
final class Trailers: Sendable {
  private enum State { case possible, suspected, refused }
  private let state = Mutex(State.possible)

  var isPossible: Bool { state.withLock { $0 == .possible } }

  /// Called when a request with a trailer was refused: it is sent again without one.
  func refuse() { state.withLock { if $0 == .possible { $0 = .suspected } } }

  /// Called after a request without a trailer, which may repeat a refused one. If it is refused too, the trailer was
  /// not the reason.
  func judge(isRefusedToo: Bool) {
    state.withLock { if $0 == .suspected { $0 = isRefusedToo ? .possible : .refused } }
  }
}

extension UploadDestination {
  /// Whether every body is read for its digest before it is sent. It is read for each file; inlined, it does not copy
  /// the destination.
  @inline(__always) var digestsAhead: Bool {
    switch traits.digests {
    case .none: false
    case .ahead: true
    case .trailing: !acquaintance.trailers.isPossible
    }
  }
}

extension BlobSource {
  /// Whether bytes that were just read cost next to nothing to read again.
  var isLocal: Bool {
    switch self {
    case let sliced as SlicedSource: sliced.slice.source.isLocal
    case let reopening as ReopeningSource: reopening.source.isLocal
    case is FileSource, is OpenFileSource, is DataSource: true
    default: false
    }
  }
}
