import Synchronization

/// A change of one asset, as the photo library reports it in `PHObjectChangeDetails`.
struct AssetChange<Asset> {
  /// The asset after the change; nil: it was deleted.
  var after: Asset?
  /// The photo or film itself is another one.
  var hasOtherContent: Bool
}

/// Readers that must know when their asset is no longer the version that they read.
final class AssetWatches<Asset: Sendable>: Sendable {
  private struct Watch {
    /// The asset after the last change: the library compares the next change with it.
    var asset: Asset
    let isSame: @Sendable (Asset) -> Bool
    let changed: @Sendable () -> Void
  }
  private struct State {
    var next = 0
    var watches: [Int: Watch] = [:]
  }
  private let state = Mutex(State())

  init() {}

  /// Calls `changed` once when the asset was deleted, has other content or is not the same to `isSame`, unless `forget` is
  /// called before with what this returns. A reader compares the version at its end too, so a change of the version that
  /// leaves the content alone would only come later.
  func watch(
    _ asset: Asset, isSame: @escaping @Sendable (Asset) -> Bool, changed: @escaping @Sendable () -> Void
  ) -> Int {
    state.withLock { state in
      state.next += 1
      state.watches[state.next] = Watch(asset: asset, isSame: isSame, changed: changed)
      return state.next
    }
  }

  func forget(_ number: Int) { state.withLock { _ = $0.watches.removeValue(forKey: number) } }

  /// The library has changed. `change` returns what became of an asset; nil: nothing. It and the closures of watches are
  /// called outside the lock.
  func apply(_ change: (Asset) -> AssetChange<Asset>?) {
    for (number, watch) in state.withLock({ $0.watches }) {
      guard let change = change(watch.asset) else { continue }
      if let after = change.after, !change.hasOtherContent, watch.isSame(after) {
        state.withLock { $0.watches[number]?.asset = after }
      } else {
        forget(number)
        watch.changed()
      }
    }
  }
}
