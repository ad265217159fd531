import Blobs

/// Makes the bytes of an archive while they are sent. Memory does not grow with the size of the archive.
final class ArchiveReader {
  private enum Step {
    case head(Int)
    case content(Int)
    case tail(Int)
    case directory(Int)
    case end
    case over
  }
  private let part: Archive.Part
  private let archive: Archive
  private var sums: [UInt32?]
  private var step: Step
  /// How many bytes of the next steps are before the range.
  private var skipped: Int64
  /// How many bytes of the range were not read yet.
  private var rest: Int64
  var isOver: Bool { rest == 0 }
  /// Bytes that are no file's, and the file that is read after them.
  private var pending: ArraySlice<UInt8> = []
  private var file: (reader: ArchivedFile, index: Int)?

  init(_ part: Archive.Part) {
    self.part = part
    sums = part.sums
    let start = part.range.lowerBound
    rest = part.range.upperBound - start
    archive = part.archive
    if start < archive.offsets[archive.count] {
      let index = archive.entry(at: start)
      (step, skipped) = (.head(index), start - archive.offsets[index])
    } else {
      (step, skipped) = (.directory(0), start - archive.offsets[archive.count])
    }
  }

  /// Fills `room`, as far as there are bytes; 0: the range is over. nil: a file cannot be read or has changed, so the
  /// archive has no more bytes.
  func read(into room: UnsafeMutableRawBufferPointer) -> Int? {
    var filled = 0
    do throws(ServerError) {
      while filled < room.count, rest > 0 {
        let space = UnsafeMutableRawBufferPointer(
          rebasing: room[filled..<filled + Int(min(Int64(room.count - filled), rest))])
        let count = try next(into: space)
        filled += count
        rest -= Int64(count)
      }
    } catch {
      part.notice?("the archive of \(part.folder) ended early: \(error.message)")
      return nil
    }
    return filled
  }

  private func next(into space: UnsafeMutableRawBufferPointer) throws(ServerError) -> Int {
    if !pending.isEmpty {
      let count = min(pending.count, space.count)
      space.copyBytes(from: pending.prefix(count))
      pending = pending.dropFirst(count)
      return count
    }
    guard var reader = file?.reader, let index = file?.index else {
      try advance()
      return 0
    }
    let count = try reader.read(into: space)
    if let sum = reader.sum {
      sums[index] = sum
      part.cache.remember(sum, of: archive.tree.entries[index])
    }
    file = reader.rest > 0 ? (reader, index) : nil
    return count
  }

  private func advance() throws(ServerError) {
    switch step {
    case .head(let index):
      step = .content(index)
      try give(archive.format.head(of: archive.member(index)))
    case .content(let index):
      step = .tail(index)
      let length = archive.tree.entries[index].length
      let offset = min(skipped, length)
      skipped -= offset
      if offset < length { file = (try ArchivedFile(part, index, at: offset), index) }
    case .tail(let index):
      step = index + 1 < archive.count ? .head(index + 1) : .directory(0)
      try give(archive.format.tail(of: archive.member(index), sum: sums[index] ?? 0), sumOf: index)
    case .directory(let index):
      step = index + 1 < archive.count ? .directory(index + 1) : .end
      try give(
        archive.format.directoryEntry(
          of: archive.member(index), sum: sums[index] ?? 0, offset: archive.offsets[index]), sumOf: index)
    case .end:
      step = .over
      try give(archive.format.end(count: archive.count, directory: archive.directory))
    case .over: throw ServerError("the archive is shorter than its length")
    }
  }

  /// Adds bytes that are no file's. `sumOf`: they have the checksum of this entry.
  private func give(_ bytes: [UInt8], sumOf index: Int? = nil) throws(ServerError) {
    let dropped = Int(min(skipped, Int64(bytes.count)))
    skipped -= Int64(dropped)
    pending = bytes[dropped...]
    if archive.format.hasSums, let index, !pending.isEmpty, sums[index] == nil {
      throw ServerError("the checksum of a file is not known")
    }
  }
}
