import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// A cache of digests of published files, computed during the upload or for a client that asked. It keeps some
/// thousands of the latest.
final class KnownDigests: Sendable {
  private struct State {
    var values: [StoredItem: [Digest.Algorithm: [UInt8]]] = [:]
    var order: [StoredItem] = []
  }
  private let state = Mutex(State())

  /// The algorithms of the digests that a client may want with QUERY: all that this system computes.
  static let algorithms = Digest.Algorithm.all.filter { Digest.Algorithm($0.name) != nil }
  /// The algorithms of the digests that HEAD and GET tell: the active ones of the registry, which other clients know, and
  /// XXH128.
  static let ofOneFile = algorithms.filter { DigestField.registered.contains($0) || $0 == .xxh128 }

  /// Stores digests and returns the value of `Repr-Digest` for them; nil if there are none.
  func remember(_ values: [Digest.Algorithm: [UInt8]]?, of item: StoredItem) -> String? {
    guard let values, !values.isEmpty else { return nil }
    state.withLock { state in
      // A digest with another algorithm, computed for an earlier request, is kept.
      if state.values[item] == nil { state.order.append(item) }
      state.values[item, default: [:]].merge(values) { $1 }
      if state.order.count > 4096 {
        for item in state.order.prefix(2048) { state.values[item] = nil }
        state.order.removeFirst(2048)
      }
    }
    return DigestField.text(values)
  }

  /// The digest that `Want-Repr-Digest` asks for, if it is cached. Another file under the same name is a different
  /// item.
  func answer(_ wanted: String?, of item: StoredItem) -> String? {
    guard let algorithm = DigestField.wanted(wanted, Self.ofOneFile) else { return nil }
    return text(algorithm, of: item)
  }

  /// The value of `Repr-Digest` with this digest only; nil if it is not cached.
  func text(_ algorithm: Digest.Algorithm, of item: StoredItem) -> String? {
    state.withLock { $0.values[item]?[algorithm] }.map { DigestField.text([algorithm: $0], [algorithm]) }
  }
}
