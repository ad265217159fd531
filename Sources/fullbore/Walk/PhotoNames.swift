import BlobMedia
import Blobs

/// The names of the photos' files in one folder, which may be many: they are in one buffer, and found by a hash.
struct PhotoNames: Sendable {
  private struct Place {
    /// The hash of the photo's stem.
    let stem: Int
    let start: UInt32
    let count: UInt32
  }
  private var letters: [UInt8] = []
  /// Sorted by the hashes.
  private var places: [Place] = []

  /// A folder with more such files has no photos here. nil: neither has a folder that cannot be opened. Blocks.
  init(_ folder: OpenFolder?, atMost most: Int) {
    while let name = folder?.nextName() {
      let photo = GalleryName(name)
      if photo.kind == .other { continue }
      guard places.count < most, let start = UInt32(exactly: letters.count),
        let count = UInt32(exactly: name.bytes.count)
      else {
        (letters, places) = ([], [])
        return
      }
      places.append(Place(stem: photo.stem.hashValue, start: start, count: count))
      letters += name.bytes
    }
    places.sort { $0.stem < $1.stem }
  }

  /// The names of all files of one photo.
  func names(of stem: BytePath) -> [BytePath] {
    let hash = stem.hashValue
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle].stem < hash { low = middle + 1 } else { high = middle }
    }
    // Two stems may have the same hash.
    return places[low...].prefix { $0.stem == hash }.map { place in
      BytePath(letters[Int(place.start)..<Int(place.start) + Int(place.count)])
    }.filter { GalleryName($0).stem == stem }
  }
}
