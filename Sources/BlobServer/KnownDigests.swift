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

  /// Computes and remembers the digest that `Want-Repr-Digest` asks for; nil: none is asked for. Blocks for as long as
  /// reading the file takes.
  func compute(_ wanted: String?, of file: OpenItem, in store: any UploadStore) throws(ServerError) -> String? {
    guard let algorithm = DigestField.wanted(wanted) else { return nil }
    return remember([algorithm: try store.digest(of: file, algorithm)], of: file.item)
  }

  /// What `Want-Repr-Digest` asks for, if it is known: another file under the same name is another item.
  func answer(_ wanted: String?, of item: StoredItem) -> String? {
    guard let algorithm = DigestField.wanted(wanted) else { return nil }
    return state.withLock { $0.values[item]?[algorithm] }.map { DigestField.text([algorithm: $0]) }
  }
}
