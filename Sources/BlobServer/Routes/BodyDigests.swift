import BlobCrypto
import BlobHTTP
import Blobs

/// What the body of one request must add up to, computed while it comes.
///
/// `Upload-Checksum` (tus 1.0 §Checksum) and `Content-Digest` are of the body, `Repr-Digest` is of the whole (RFC 9530).
/// Each may come in a trailer after the body, where the head announces it by `Trailer` or has the same field itself.
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
  /// SHA-1 is a must; CRC-32C costs next to nothing.
  private static let tus: [Digest.Algorithm] = [.sha1, .crc32c, .sha256]
  static let tusNames = tus.map(\.name).joined(separator: ",")

  private let fields: [Field]
  private var digests: [Digest.Algorithm: Digest] = [:]
  private var wanted: [(field: Field, values: [Digest.Algorithm: [UInt8]])] = []
  /// Named by `Trailer`, and not in the head. They must come, also where they are of a whole that this body is a part of.
  private var awaited: [Field] = []
  /// The body does not count before `check`, since the head has a digest of it, or announces one.
  let isNeeded: Bool

  /// nil when the request has no checksum and no digest. Throws 400 for a checksum algorithm that the server does not have,
  /// and for what is no digest. `isWhole`: the body is all there is of the representation.
  static func ofTus(_ headers: HTTPHeaders, isWhole: Bool = false) throws(ServerError) -> BodyDigests? {
    let digests = try BodyDigests(headers, [.tus, .content], isWhole: isWhole)
    return digests.isEmpty ? nil : digests
  }

  /// nil when the request has no digest and asks for none. `isWhole`: the body is all there is of the representation.
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

  /// Those of `fields` that the head announces by `Trailer`.
  private static func announced(_ fields: [Field], by head: HTTPHeaders) -> [Field] {
    let names = head.list("Trailer")
    return fields.filter { field in names.contains { $0.isSameField(field.rawValue) } }
  }

  private var isEmpty: Bool { digests.isEmpty && awaited.isEmpty }
  /// The request has or announces a digest to be compared.
  var isPromised: Bool { !wanted.isEmpty || !awaited.isEmpty }
  private func compute(_ algorithms: some Sequence<Digest.Algorithm>) {
    for algorithm in algorithms where digests[algorithm] == nil { digests[algorithm] = Digest(algorithm) }
  }

  func take(_ piece: BodyPiece) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
    for digest in digests.values { digest.update(bytes) }
  }

  /// Checks the digests of a request without a body before anything of it counts, such as the length that it tells. Throws as
  /// `check` does. Without effect where a body follows.
  func checkEmpty(_ contentLength: Int64?) throws(ServerError) { if contentLength == 0 { try check([:]) } }

  /// All of the body was taken. Throws 460 (tus) or 400 when it is not what was promised. Call `checkAnnounced` before.
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

  /// Throws 400 for a digest in the trailer section that the head neither announces by `Trailer` nor has itself: it was not
  /// computed while the bytes came. `fields`: those that the request may have.
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

  /// Of the body, as far as they were computed in a form that `Repr-Digest` has a name for.
  var values: [Digest.Algorithm: [UInt8]] {
    digests.filter { digest in DigestField.algorithms.contains { $0.algorithm == digest.key } }.mapValues { $0.value() }
  }

  /// Whether the representation is known to be right: it was promised, and `check` has found it so.
  var hasCheckedRepresentation: Bool { wanted.contains { $0.field == .representation } }

  static func mismatch(_ field: Field, _ algorithm: Digest.Algorithm) -> ServerError {
    let message = "the bytes that came do not have the \(algorithm) of \(field.rawValue); send them again"
    return field == .tus
      ? ServerError(460, message) : ServerError(400, message, problem: "digest-mismatching-values")
  }

  /// nil when the field is missing, or has none of the digests known here.
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
