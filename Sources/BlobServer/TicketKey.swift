import BlobCrypto
import Blobs
import Synchronization

/// The key of tickets. It is made from the token and the path of the folder, so tickets are valid as long as both stay the
/// same, also after the server was started again.
final class TicketKey: Sendable {
  private let token: [UInt8]
  private let folder: BytePath
  private let made = Mutex<[UInt8]?>(nil)

  /// Whoever has a ticket can try tokens until one gives this ticket. The rounds make each try take long.
  private static let rounds = 50_000

  init(_ token: String, _ folder: BytePath) {
    self.token = Array(token.utf8)
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
