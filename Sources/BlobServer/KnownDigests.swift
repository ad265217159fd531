import BlobHTTP
import Blobs
import Synchronization

/// Digests of published files, as far as they were computed when those arrived. Some thousands of the latest.
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
      if state.values.updateValue(values, forKey: item) == nil { state.order.append(item) }
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
    return state.withLock { $0.values[item]?[algorithm] }.map { DigestField.text([algorithm: $0]) }
  }
}
