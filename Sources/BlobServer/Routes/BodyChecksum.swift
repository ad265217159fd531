import BlobHTTP
import Blobs

/// What the body of one request must add up to, from `Upload-Checksum`. tus 1.0 §Checksum.
final class BodyChecksum: @unchecked Sendable {
  // Belongs to the event thread of its connection, as its receiver does.
  /// SHA-1 is a must; CRC-32C costs next to nothing.
  static let algorithms: [Digest.Algorithm] = [.sha1, .crc32c, .sha256]

  private let digest: Digest
  private let wanted: [UInt8]

  /// nil when the request has none. Throws 400 for an algorithm that is not ours and for what is no digest.
  init?(_ headers: HTTPHeaders) throws(ServerError) {
    let fields = headers.fields.filter { $0.name.isSameField("Upload-Checksum") }
    guard let field = fields.first else { return nil }
    let parts = field.value.split(separator: " ", omittingEmptySubsequences: false)
    guard fields.count == 1, parts.count == 2, let wanted = Base64.decode(parts[1]) else {
      throw ServerError(400, "Upload-Checksum must be an algorithm, a space and a base64 value")
    }
    guard let algorithm = Self.algorithms.first(where: { $0.name == parts[0] }) else {
      throw ServerError(400, "the checksum '\(parts[0].prefix(100))' is not spoken; \(Self.names) are")
    }
    guard wanted.count == algorithm.size else {
      throw ServerError(400, "a \(algorithm) has \(algorithm.size) bytes, Upload-Checksum has \(wanted.count)")
    }
    digest = Digest(algorithm)
    self.wanted = wanted
  }

  static var names: String { algorithms.map(\.name).joined(separator: ",") }

  func take(_ piece: BodyPiece) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
    digest.update(bytes)
  }

  /// All of the body was taken. Throws 460 when it is not what was promised.
  func check() throws(ServerError) {
    if digest.value() != wanted {
      throw ServerError(
        460, "the bytes that came do not have the \(digest.algorithm) of Upload-Checksum; send them again")
    }
  }
}
