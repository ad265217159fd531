import Blobs
import Platform

/// A folder being read. All its names are sorted if they fit the limit; otherwise they come in the order of the file
/// system. With `mostPhotos`, which is the limit then, the files of one photo follow each other, the main file first.
final class OpenFolder {
  let path: BytePath
  let relative: BytePath
  /// Subfolders found so far, to be entered when this folder is closed.
  var subfolders = NameList()
  /// A name that `nextName` returns before all others.
  var next: BytePath?
  /// The error number with which the listing failed, or 0.
  private(set) var error: Int32 = 0

  private let stream: OpaquePointer
  /// The names read ahead, in one buffer, and their places. The next name is the last place.
  private var letters: [UInt8] = []
  private var names: [Place] = []
  private struct Place {
    let start: UInt32
    let count: UInt16
    var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
  }
  private var hasMore = true
  private let mostPhotos: Int?

  /// nil if the folder cannot be opened; `errno` has the reason.
  init?(_ path: BytePath, _ relative: BytePath, follow: Bool, mostPhotos: Int? = nil) {
    let descriptor = path.open(O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW))
    if descriptor < 0 { return nil }
    guard let stream = fdopendir(descriptor) else {
      let number = errno
      close(descriptor)
      errno = number
      return nil
    }
    self.path = path
    self.relative = relative
    self.stream = stream
    self.mostPhotos = mostPhotos
    fill()
  }

  deinit { closedir(stream) }

  func nextName() -> BytePath? {
    if let next = next.take() { return next }
    if let place = names.popLast() { return BytePath(letters[place.range]) }
    return hasMore ? readName().map { BytePath($0) } : nil
  }

  func look(at name: BytePath, _ status: inout stat, follow: Bool) -> Int32 {
    name.withCString { fstatat(dirfd(stream), $0, &status, follow ? 0 : AT_SYMLINK_NOFOLLOW) }
  }

  private func fill() {
    let limit = mostPhotos ?? FileTree.sortedLimit
    while names.count < limit, let name = readName() {
      names.append(Place(start: UInt32(letters.count), count: UInt16(name.count)))
      letters += name
    }
    if hasMore { return names.reverse() }
    letters.withUnsafeBytes { letters in
      func name(_ place: Place) -> UnsafeRawBufferPointer { .init(rebasing: letters[place.range]) }
      names.sort { BytePath.isLess(name($0), name($1)) }
      if mostPhotos != nil, let order = PhotoPlace.order(of: names.count, { PhotoPlace(name(names[$0])) }) {
        names = order.map { names[$0] }
      }
    }
    names.reverse()
  }

  /// The next name, which is valid until the next call.
  private func readName() -> UnsafeRawBufferPointer? {
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        error = errno
        hasMore = false
        return nil
      }
      let name = Self.name(of: entry)
      let isDots = name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") }
      if !isDots { return name }
    }
  }

  /// Uses the pointer: copying the entry would read beyond the memory that the system allocated for a short name.
  private static func name(of entry: UnsafeMutablePointer<dirent>) -> UnsafeRawBufferPointer {
    let name = UnsafeRawPointer(entry).advanced(by: MemoryLayout<dirent>.offset(of: \.d_name)!)
    return UnsafeRawBufferPointer(start: name, count: strlen(name.assumingMemoryBound(to: CChar.self)))
  }
}

/// Folders found in one parent folder and not entered yet.
struct PendingFolders {
  let path: BytePath
  let relative: BytePath
  var names: NameList
}

/// A compact list of names in one buffer: 100,000 names need little more memory than their bytes.
struct NameList {
  // Each name ends with NUL, which no name contains.
  private var bytes: [UInt8] = []

  var isEmpty: Bool { bytes.isEmpty }

  mutating func append(_ name: BytePath) {
    bytes.append(contentsOf: name.bytes)
    bytes.append(0)
  }

  /// Removes and returns the last name. The list must not be empty.
  mutating func popLast() -> BytePath {
    bytes.removeLast()
    let start = bytes.lastIndex(of: 0).map { $0 + 1 } ?? 0
    let name = BytePath(bytes[start...])
    bytes.removeSubrange(start...)
    return name
  }

  /// The names in reverse order, so that `popLast` returns them in the order in which they were added.
  func reversed() -> NameList {
    var result = NameList()
    result.bytes.reserveCapacity(bytes.count)
    for name in bytes.dropLast().split(separator: 0, omittingEmptySubsequences: false).reversed() {
      result.bytes.append(contentsOf: name)
      result.bytes.append(0)
    }
    return result
  }
}
