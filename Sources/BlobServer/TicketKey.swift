import BlobCrypto
import Blobs
import Synchronization

/// The key of tickets. It is made from the token and the path of the folder, so tickets are valid as long as both stay the
/// same, also after the server was started again.
final class TicketKey: Sendable {
  private let token: [UInt8]
  private let folder: BytePath
  private let made = Mutex<[UInt8]?>(nil)

  /// Somebody with a ticket can guess a token, make the ticket of the same place from it, and compare. Many rounds make
  /// each guess slow.
  private static let rounds = 50_000

  init(_ token: String, _ folder: BytePath) {
    // HMAC itself replaces a key that is longer than its block of 64 bytes by the digest, but in each round. RFC 2104 §2.
    let bytes = Array(token.utf8)
    self.token = bytes.count > 64 ? Digest.value(of: bytes, .sha256) : bytes
    self.folder = folder
  }

  /// The first call blocks for a short time.
  var value: [UInt8] {
    made.withLock { made in
      let value = made ?? make()
      made = value
      return value
    }
  }

  /// PBKDF2 with HMAC-SHA-256. RFC 8018 §5.2.
  private func make() -> [UInt8] {
    var block = HMAC.sha256("fullbore ticket\0".utf8 + folder.bytes + [0, 0, 0, 1], key: token)
    var key = block
    for _ in 1..<Self.rounds {
      block = HMAC.sha256(block, key: token)
      for index in key.indices { key[index] ^= block[index] }
    }
    return key
  }
}
