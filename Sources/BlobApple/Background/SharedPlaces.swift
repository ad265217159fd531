import BlobUpload
import Synchronization

/// The state that all uploaders of a process share if they send for one account by one journal. It keeps two of them from
/// sending to one place at the same time, which the journal does for other processes only.
final class SharedPlaces: Sendable {
  let order = PlaceOrder()
  let cancelled = CancelledTasks()

  private struct Key: Hashable {
    var journal: ObjectIdentifier
    var account: String?
  }
  private struct Known { weak var places: SharedPlaces? }
  private static let known = Mutex<[Key: Known]>([:])

  /// The caller keeps the result as long as the journal.
  static func of(_ journal: Journal, account: String?) -> SharedPlaces {
    let key = Key(journal: ObjectIdentifier(journal), account: account)
    return known.withLock { known in
      if let places = known[key]?.places { return places }
      known = known.filter { $0.value.places != nil }
      let places = SharedPlaces()
      known[key] = Known(places: places)
      return places
    }
  }
}
