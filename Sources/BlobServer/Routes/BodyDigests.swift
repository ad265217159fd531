import BlobCrypto
import BlobHTTP
import Blobs

/// The checksums and digests of one request's body, computed while it arrives.
///
/// `Upload-Checksum` (tus 1.0 §Checksum) and `Content-Digest` refer to the body, `Repr-Digest` to the whole
/// representation (RFC 9530). Each may be sent in a trailer after the body, if the header section announces it in
/// `Trailer` or contains the same field itself.
final class BodyDigests: @unchecked Sendable {
  // Belongs to the event thread of its connection, as its receiver does.
  enum Field: String, CaseIterable {
    case tus = "Upload-Checksum"
    case content = "Content-Digest"
    case representation = "Repr-Digest"

    fileprivate var algorithms: [Digest.Algorithm] {
      self == .tus ? BodyDigests.tus : DigestField.algorithms.map(\.algorithm)
    }
  }
  /// tus requires SHA-1; CRC-32C costs almost nothing.
  private static let tus: [Digest.Algorithm] = [.sha1, .crc32c, .sha256]
  static let tusNames = tus.map(\.name).joined(separator: ",")

  private let fields: [Field]
  private var digests: [Digest.Algorithm: Digest] = [:]
  private var wanted: [(field: Field, values: [Digest.Algorithm: [UInt8]])] = []
  /// Fields that `Trailer` announces and that are not in the header section. They must arrive, even if they refer to a
  /// representation of which this body is only a part.
  private var awaited: [Field] = []
  /// Whether the body must not be used before `check`, because the header section contains or announces a digest of it.
  let isNeeded: Bool

  /// Returns nil if the request has no checksum and no digest. Throws 400 for an unsupported checksum algorithm and for
  /// an invalid digest. `isWhole`: the body is the whole representation.
  static func ofTus(_ headers: HTTPHeaders, isWhole: Bool = false) throws(ServerError) -> BodyDigests? {
    let digests = try BodyDigests(headers, [.tus, .content], isWhole: isWhole)
    return digests.isEmpty ? nil : digests
  }

  /// Returns nil if the request has no digest and asks for none. `isWhole`: the body is the whole representation.
  static func ofHTTP(_ headers: HTTPHeaders, isWhole: Bool) throws(ServerError) -> BodyDigests? {
    let digests = try BodyDigests(headers, [.content], isWhole: isWhole)
    if isWhole, let algorithm = DigestField.wanted(headers["Want-Repr-Digest"]) { digests.compute([algorithm]) }
    return digests.isEmpty ? nil : digests
  }

  private init(_ headers: HTTPHeaders, _ ofBody: [Field], isWhole: Bool) throws(ServerError) {
    fields = isWhole ? ofBody + [.representation] : ofBody
    let announced = Self.announced(ofBody + [.representation], by: headers)
    awaited = announced.filter { headers[$0.rawValue] == nil }
    for field in fields {
      if let values = try Self.values(of: field, headers) { wanted.append((field, values)) }
    }
    isNeeded = !awaited.isEmpty || (wanted.map(\.field) + announced).contains { $0 != .representation }
    for (_, values) in wanted { compute(values.keys) }
    for field in announced where fields.contains(field) { compute(field.algorithms) }
  }

  /// The fields out of `fields` that the header section announces in `Trailer`.
  private static func announced(_ fields: [Field], by head: HTTPHeaders) -> [Field] {
    let names = head.list("Trailer")
    return fields.filter { field in names.contains { $0.isSameField(field.rawValue) } }
  }

  private var isEmpty: Bool { digests.isEmpty && awaited.isEmpty }
  /// Whether the request contains or announces a digest to verify.
  var isPromised: Bool { !wanted.isEmpty || !awaited.isEmpty }
  private func compute(_ algorithms: some Sequence<Digest.Algorithm>) {
    for algorithm in algorithms where digests[algorithm] == nil { digests[algorithm] = Digest(algorithm) }
  }

  func take(_ piece: BodyPiece) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
    for digest in digests.values { digest.update(bytes) }
  }

  /// Verifies the digests of a request without a body before any of its information is used, such as the length that it
  /// declares. Throws as `check` does. Does nothing if a body follows.
  func checkEmpty(_ contentLength: Int64?) throws(ServerError) { if contentLength == 0 { try check([:]) } }

  /// Verifies the complete body. Throws 460 (tus) or 400 on a mismatch. Call `checkAnnounced` before.
  func check(_ trailers: HTTPHeaders) throws(ServerError) {
    if let missing = awaited.first(where: { trailers[$0.rawValue] == nil }) {
      throw ServerError(400, "the trailer \(missing.rawValue) was announced and did not come")
    }
    awaited = []
    for field in fields where !trailers.fields.isEmpty {
      if let values = try Self.values(of: field, trailers) { wanted.append((field, values)) }
    }
    for (field, values) in wanted {
      for (algorithm, value) in values {
        guard let digest = digests[algorithm] else { throw Self.unannounced(field) }
        if digest.value() != value { throw Self.mismatch(field, algorithm) }
      }
    }
  }

  /// Throws 400 for a digest in the trailer section that the header section neither announces in `Trailer` nor contains
  /// itself: it was not computed while the bytes arrived. `fields`: those that the request may have.
  static func checkAnnounced(
    _ trailers: HTTPHeaders, by head: HTTPHeaders, _ fields: [Field]
  ) throws(ServerError) {
    if trailers.fields.isEmpty { return }
    let announced = announced(fields, by: head)
    for field in fields where trailers[field.rawValue] != nil && !announced.contains(field) {
      if try values(of: field, head) == nil { throw unannounced(field) }
    }
  }

  private static func unannounced(_ field: Field) -> ServerError {
    ServerError(400, "the trailer \(field.rawValue) must be announced by Trailer, before the bytes")
  }

  /// The digests of the body that were computed with algorithms that `Repr-Digest` supports.
  var values: [Digest.Algorithm: [UInt8]] {
    digests.filter { digest in DigestField.algorithms.contains { $0.algorithm == digest.key } }.mapValues { $0.value() }
  }

  /// Whether the representation was verified: the request contained its digest, and `check` succeeded.
  var hasCheckedRepresentation: Bool { wanted.contains { $0.field == .representation } }

  static func mismatch(_ field: Field, _ algorithm: Digest.Algorithm) -> ServerError {
    let message = "the bytes that came do not have the \(algorithm) of \(field.rawValue); send them again"
    return field == .tus
      ? ServerError(460, message) : ServerError(400, message, problem: "digest-mismatching-values")
  }

  /// Returns nil if the field is missing, or contains no supported digest.
  static func values(of field: Field, _ headers: HTTPHeaders) throws(ServerError) -> [Digest.Algorithm: [UInt8]]? {
    let lines = headers.fields.filter { $0.name.isSameField(field.rawValue) }.map(\.value)
    guard let first = lines.first else { return nil }
    if field == .tus { return try checksum(first, isAlone: lines.count == 1) }
    guard let values = DigestField.values(lines.joined(separator: ",")) else {
      throw ServerError(
        400, "\(field.rawValue) must be pairs like sha-256=:base64:", problem: "digest-invalid-values")
    }
    return values.isEmpty ? nil : values
  }

  private static func checksum(_ text: String, isAlone: Bool) throws(ServerError) -> [Digest.Algorithm: [UInt8]] {
    let parts = text.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Substring($0) }
    guard isAlone, parts.count == 2, let value = Base64.decode(parts[1]) else {
      throw ServerError(400, "Upload-Checksum must be an algorithm, a space and a base64 value")
    }
    guard let algorithm = tus.first(where: { $0.name == parts[0] }) else {
      throw ServerError(400, "the checksum '\(parts[0].prefix(100))' is not spoken; \(tusNames) are")
    }
    guard value.count == algorithm.size else {
      throw ServerError(400, "a \(algorithm) has \(algorithm.size) bytes, Upload-Checksum has \(value.count)")
    }
    return [algorithm: value]
  }
}
