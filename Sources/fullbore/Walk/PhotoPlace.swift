import BlobMedia
import Blobs

/// Which photo a file belongs to, and its place among the files of the photo, by its name.
struct PhotoPlace {
  /// A hash of the folder and of the photo's stem.
  let photo: UInt64
  /// The picture comes before its RAW file, that before a film, and an original before its edit.
  let rank: Int

  /// nil: the file is no photo's. `path`: of the file, or its name only.
  init?(_ path: UnsafeRawBufferPointer) {
    let (folder, name) = Self.split(path)
    let parts = GalleryNameParts(name)
    guard let rank = Self.rank(parts) else { return nil }
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in folder { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    (photo, self.rank) = (parts.hashOfStem(in: name, after: hash), rank)
  }

  init?(_ path: BytePath) {
    guard let place = path.bytes.withUnsafeBytes({ PhotoPlace($0) }) else { return nil }
    self = place
  }

  static func areOfOnePhoto(_ path: BytePath, _ other: BytePath) -> Bool {
    path.bytes.withUnsafeBytes { path in
      other.bytes.withUnsafeBytes { other in
        let ((folder, name), (otherFolder, otherName)) = (split(path), split(other))
        guard folder.elementsEqual(otherFolder), GalleryNameParts.mayHaveOneStem(name, otherName) else { return false }
        let (parts, others) = (GalleryNameParts(name), GalleryNameParts(otherName))
        return parts.kind != .other && others.kind != .other
          && GalleryNameParts.haveOneStem(parts, in: name, others, in: otherName)
      }
    }
  }

  /// nil: the file is no photo's.
  static func rank(_ name: GalleryNameParts) -> Int? {
    let kind: Int
    switch name.kind {
    case .photo: kind = 0
    case .raw: kind = 1
    case .video: kind = 2
    case .sidecar: kind = 3
    case .other: return nil
    }
    return kind + (name.isRendered ? 4 : 0)
  }

  /// The order of files in which those of one photo follow each other, its main file first, at the place of the first of
  /// them; nil: they are in that order. `place`: that of each file; nil: it is no photo's.
  static func order(of count: Int, _ place: (Int) -> PhotoPlace?) -> [Int]? {
    var places = (0..<count).compactMap { index in
      place(index).map { (photo: $0.photo, rank: UInt32($0.rank), index: UInt32(index)) }
    }
    places.sort { ($0.photo, $0.rank, $0.index) < ($1.photo, $1.rank, $1.index) }
    // Where the files of a photo begin. If two photos had the same hash, their files would only be mixed.
    var first: [UInt32]?
    var (start, isInOrder) = (0, true)
    while start < places.count {
      let end = places[start...].firstIndex { $0.photo != places[start].photo } ?? places.count
      if end - start > 1, let least = places[start..<end].map(\.index).min() {
        for offset in start..<end where places[offset].index != least + UInt32(offset - start) { isInOrder = false }
        if first == nil { first = (0..<UInt32(count)).map { $0 } }
        for offset in start..<end { first?[Int(places[offset].index)] = least }
      }
      start = end
    }
    guard !isInOrder, let first else { return nil }
    // A file that is no photo's has its own place.
    var ranks = [UInt32](repeating: 0, count: count)
    for place in places { ranks[Int(place.index)] = place.rank }
    return (0..<count).sorted { (first[$0], ranks[$0], $0) < (first[$1], ranks[$1], $1) }
  }

  private static func split(
    _ path: UnsafeRawBufferPointer
  ) -> (folder: UnsafeRawBufferPointer, name: UnsafeRawBufferPointer) {
    let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    return (.init(rebasing: path[..<start]), .init(rebasing: path[start...]))
  }
}
