import BlobUpload
import Synchronization

/// What the uploaders of a process share that send for one account by one journal: without it they would send to one place
/// at the same time, since the journal keeps only other processes from that.
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
