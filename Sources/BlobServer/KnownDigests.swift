import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// Digests of published files that were computed when the bytes came, or for a client that asked. Some thousands of the
/// latest are kept.
final class KnownDigests: Sendable {
  private struct State {
    var values: [StoredItem: [Digest.Algorithm: [UInt8]]] = [:]
    var order: [StoredItem] = []
  }
  private let state = Mutex(State())

  /// The value of `Repr-Digest` for them; nil when there are none.
  func remember(_ values: [Digest.Algorithm: [UInt8]]?, of item: StoredItem) -> String? {
    guard let values, !values.isEmpty else { return nil }
    state.withLock { state in
      // A digest by another algorithm, computed for an earlier request, is kept.
      if state.values[item] == nil { state.order.append(item) }
      state.values[item, default: [:]].merge(values) { $1 }
      if state.order.count > 4096 {
        for item in state.order.prefix(2048) { state.values[item] = nil }
        state.order.removeFirst(2048)
      }
    }
    return DigestField.text(values)
  }

  /// What `Want-Repr-Digest` asks for, if it is known: another file under the same name is another item.
  func answer(_ wanted: String?, of item: StoredItem) -> String? {
    guard let algorithm = DigestField.wanted(wanted) else { return nil }
    return text(algorithm, of: item)
  }

  /// The value of `Repr-Digest` with this digest alone; nil where it is not known.
  func text(_ algorithm: Digest.Algorithm, of item: StoredItem) -> String? {
    state.withLock { $0.values[item]?[algorithm] }.map { DigestField.text([algorithm: $0]) }
  }
}
