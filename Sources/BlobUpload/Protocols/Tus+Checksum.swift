import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// tus 1.0 §Checksum, with checksum-trailer.
///
/// The digest comes before the body where reading twice costs next to nothing, as of a file, which the system still
/// holds: a field in the head gets through everywhere. Of a pipe, of what is at a URL or in a database it comes after the
/// body, which is read once, and sent while it is read.
extension Tus {
  /// A part is read once for its digest and once to be sent: bounded, what was read is still in the system's cache.
  static let usualChecked: Int64 = 8 << 20

  /// Throws when a checksum is wanted that the server does not offer.
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

  /// As this server takes checksums and deletes uploads.
  func offered(_ headers: HTTPHeaders) -> Tus {
    var tus = self
    tus.terminates = headers.list("Tus-Extension").contains("termination")
    tus.trailsChecksums = checksum != nil && headers.list("Tus-Extension").contains("checksum-trailer")
    return tus
  }

  /// Sends a body with its digest, if one is wanted, before it or after it.
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
        .rephrase, .destination, "\(request.method) \(request.url): \(response.summary)", status: response.status)
    }
    return response
  }

  private static let checksumField = "Upload-Checksum"
  /// What is said by who loses trailers on the way, and by who knows no chunks.
  private static let refusals = [400, 411, 501]

  /// The field for a body, which is read for it; nil when none is wanted or the body cannot be read twice.
  func uploadChecksum(of body: BlobSlice) async throws(UploadError) -> String? {
    guard let checksum, body.canBeReadTwice else { return nil }
    return "\(checksum) \(base64(try await digests(of: body, [checksum])[0]))"
  }
}

/// Whether fields get through to a host that follow a body.
final class Trailers: Sendable {
  private enum State { case possible, suspected, refused }
  private let state = Mutex(State.possible)

  var isPossible: Bool { state.withLock { $0 == .possible } }

  /// They did not get through, as it seems: what was refused goes again without them.
  func refuse() { state.withLock { if $0 == .possible { $0 = .suspected } } }

  /// What was refused with them went without them. Refused again, it was not for them.
  func judge(isRefusedToo: Bool) {
    state.withLock { if $0 == .suspected { $0 = isRefusedToo ? .possible : .refused } }
  }
}

extension UploadDestination {
  /// Every body is read for its digest before it is sent.
  var digestsAhead: Bool {
    switch traits.digests {
    case .none: false
    case .ahead: true
    case .trailing: !acquaintance.trailers.isPossible
    }
  }
}

extension BlobSource {
  /// What was read of it a moment ago costs next to nothing to read again.
  var isLocal: Bool {
    switch self {
    case let sliced as SlicedSource: sliced.slice.source.isLocal
    case let reopening as ReopeningSource: reopening.source.isLocal
    case is FileSource, is HeldFileSource, is DataSource: true
    default: false
    }
  }
}
