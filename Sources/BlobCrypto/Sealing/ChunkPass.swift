import Blobs

/// One pass over a source that is sealed or opened chunk by chunk. What it has read and not yet returned stays in it when
/// its reader ends, so that a source that is read once can go on.
///
/// A pass belongs to one thread at a time.
final class ChunkPass {
  enum Direction { case seal, open }

  private let direction: Direction
  private let seal: FileSeal
  private let cipher: ChunkCipher
  /// Bytes of a whole chunk as they are read, and as they are returned.
  private let (input, output): (Int, Int)
  /// It has memory once something is read: for a whole chunk, or for all of a shorter source.
  private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Offset of the next byte that is returned.
  private(set) var offset: Int64
  /// The chunk in `buffer`, or the next one.
  private var number: Int64
  /// Bytes of the chunk that were read; while it is not transformed, they are in `buffer`.
  private var filled = 0
  /// Bytes of the transformed chunk in `buffer`; nil: it is not transformed yet.
  private var ready: Int?
  /// The first byte of the next chunk, which was read to find out whether there is one.
  private var ahead: UInt8?
  private var isLast = false

  /// `offset`: of the first byte to return.
  init(_ direction: Direction, _ seal: FileSeal, at offset: Int64) {
    self.direction = direction
    self.seal = seal
    self.offset = offset
    let (chunk, sealed) = (FileSeal.chunk, FileSeal.chunk + FileSeal.overhead)
    (input, output) = direction == .seal ? (chunk, sealed) : (sealed, chunk)
    number = max(0, offset - (direction == .seal ? Int64(seal.prefix.count) : 0)) / Int64(output)
    cipher = ChunkCipher(key: seal.payloadKey)
  }

  deinit { release() }

  private func release() {
    // Freed memory must not contain plaintext.
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    buffer.deallocate()
  }

  /// Where the next byte of the source is to be read.
  var sourceOffset: Int64 {
    let start = direction == .seal ? 0 : Int64(seal.prefix.count)
    return start + number * Int64(input) + Int64(filled) + (ahead == nil ? 0 : 1)
  }

  /// Bytes of the first chunk's output begin here.
  private var outputStart: Int64 { direction == .seal ? Int64(seal.prefix.count) : 0 }
  private var place: Int64 { offset - outputStart - number * Int64(output) }

  /// To be called once, before the first read of a pass that begins in the middle of a source of unknown length. Throws
  /// `.outOfRange` if the source ends before `offset`.
  func settle(_ reader: any BlobReader, asksBeforeEach: Bool) throws(BlobError) {
    if number == 0 && place <= 0 { return }
    try transform(reader, nil, asksBeforeEach)
    if place > Int64(ready ?? 0) {
      throw BlobError(.outOfRange, "open at byte \(offset): there are \(offset - place + Int64(ready ?? 0))")
    }
  }

  /// The pass is at the end of the source.
  func end() { (ready, isLast) = (0, true) }

  /// As `BlobReader.read`. `length`: of the source; nil: unknown. `asksBeforeEach`: the source must still be the version
  /// that was opened before a chunk of it is transformed.
  func read(
    into target: UnsafeMutableRawBufferPointer, from reader: any BlobReader, length: Int64?, asksBeforeEach: Bool
  ) throws(BlobError) -> Int {
    if place < 0 {
      // The header and the first bytes after it are read at once. If the source fails, the offset stays.
      if target.count > -place, ready == nil { try transform(reader, length, asksBeforeEach) }
      let rest = seal.prefix[(seal.prefix.count + Int(place))...].prefix(target.count)
      target.copyBytes(from: rest)
      offset += Int64(rest.count)
      return rest.count + takeReady(into: UnsafeMutableRawBufferPointer(rebasing: target.dropFirst(rest.count)))
    }
    while true {
      if ready != nil {
        let count = takeReady(into: target)
        if count > 0 || isLast { return count }
        begin(number + 1)
      }
      let count = try transformInPlace(target, reader, length, asksBeforeEach)
      if count > 0 || ready != nil { return count }
      try transform(reader, length, asksBeforeEach)
    }
  }

  /// Seals whole chunks in the caller's memory, as many as it has room for, so that their bytes are not copied. Returns
  /// the number of bytes; 0: there is no room for a chunk, a part of one is in
  /// `buffer`, or one is wanted from its middle.
  private func transformInPlace(
    _ target: UnsafeMutableRawBufferPointer, _ reader: any BlobReader, _ length: Int64?, _ asksBeforeEach: Bool
  ) throws(BlobError) -> Int {
    var count = 0
    // As much as `makeRoom` asks for, so that it never replaces the caller's memory.
    let room = input + FileSeal.overhead
    while direction == .seal, length != nil, filled == 0, place == 0, !isLast, target.count - count >= room {
      let own = buffer
      buffer = UnsafeMutableRawBufferPointer(rebasing: target[count..<count + room])
      do throws(BlobError) {
        try transform(reader, length, asksBeforeEach)
        buffer = own
      } catch {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<filled])
        buffer = own
        keep(UnsafeRawBufferPointer(part), length)
        // The caller's memory may be sent or freed, and must not contain plaintext.
        part.initializeMemory(as: UInt8.self, repeating: 0)
        // The chunks before this one are returned. The next read meets the error again, or goes on.
        if count > 0 { return count }
        throw error
      }
      let done = ready ?? 0
      count += done
      offset += Int64(done)
      if isLast { end() } else { begin(number + 1) }
    }
    return count
  }

  /// Keeps the bytes that were read of a chunk before its source failed.
  private func keep(_ part: UnsafeRawBufferPointer, _ length: Int64?) {
    filled = 0
    _ = makeRoom(length)
    buffer.copyMemory(from: part)
    filled = part.count
  }

  /// Copies what is ready of the chunk, and returns the number of bytes.
  private func takeReady(into target: UnsafeMutableRawBufferPointer) -> Int {
    let rest = UnsafeRawBufferPointer(
      rebasing: buffer[..<(ready ?? 0)].dropFirst(Int(clamping: max(0, place))).prefix(target.count))
    target.copyMemory(from: rest)
    offset += Int64(rest.count)
    return rest.count
  }

  private func begin(_ number: Int64) {
    self.number = number
    (ready, filled) = (nil, 0)
    if let ahead {
      buffer[0] = ahead
      (self.ahead, filled) = (nil, 1)
    }
  }

  private func transform(_ reader: any BlobReader, _ length: Int64?, _ asksBeforeEach: Bool) throws(BlobError) {
    isLast = try fill(reader, length)
    if asksBeforeEach { try reader.finish() }
    // The source ends where a chunk would begin.
    if filled == 0 && number > 0 { return end() }
    switch direction {
    case .seal:
      let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(filled + FileSeal.overhead))
      cipher.seal(chunk, nonce: FileSeal.nonce(number, isLast: isLast))
      ready = chunk.count
    case .open:
      let chunk = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(filled))
      let isEmpty = filled <= FileSeal.overhead
      guard cipher.open(chunk, nonce: FileSeal.nonce(number, isLast: isLast)), !isEmpty || number == 0 else {
        throw BlobError(
          .io,
          "open an age file: chunk \(number + 1) is not what was sealed: it was changed, or the file was cut or joined")
      }
      ready = filled - FileSeal.overhead
    }
  }

  /// Reads the rest of the chunk. Returns whether it is the last one.
  private func fill(_ reader: any BlobReader, _ length: Int64?) throws(BlobError) -> Bool {
    let room = makeRoom(length)
    while filled < room {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<room])
      let count = try reader.readChecked(into: rest, at: sourceOffset)
      if count == 0 { break }
      filled += count
    }
    let end = sourceOffset
    if let length {
      if filled < input, end < length {
        throw BlobError(.truncated, "the source ended at byte \(end) of \(length)")
      }
      if end > length { throw BlobError(.changed, "the source goes on after its \(length) bytes") }
      return end == length
    }
    if filled < input { return true }
    var next: UInt8 = 0
    let count = try readOne(reader, &next, at: end)
    if count > 0 { ahead = next }
    return count == 0
  }

  /// Returns how many bytes of a chunk are read at most. One that is behind the source's length shows that it has grown.
  private func makeRoom(_ length: Int64?) -> Int {
    let room = Int(clamping: min(Int64(input), (length ?? .max).addingClamped(1)))
    if buffer.count >= room + FileSeal.overhead { return room }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: room + FileSeal.overhead, alignment: 16)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[..<filled]))
    release()
    buffer = larger
    return room
  }

  private func readOne(_ reader: any BlobReader, _ byte: inout UInt8, at offset: Int64) throws(BlobError) -> Int {
    let one = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
    defer { one.deallocate() }
    let count = try reader.readChecked(into: one, at: offset)
    byte = count > 0 ? one[0] : 0
    return count
  }
}

/// Reads a pass.
final class ChunkReader: BlobReader {
  let info: BlobInfo
  private var reader: (any BlobReader)?
  private let pass: ChunkPass
  private let length: Int64?
  private let asksBeforeEach: Bool
  private let ended: () -> Void

  /// `length`: of the bytes of `reader`'s source; nil: unknown. `ended` is called when nothing reads the pass any more.
  init(
    _ reader: any BlobReader, _ pass: ChunkPass, _ info: BlobInfo, length: Int64?, asksBeforeEach: Bool,
    _ ended: @escaping () -> Void = {}
  ) {
    (self.reader, self.pass, self.info) = (reader, pass, info)
    (self.length, self.asksBeforeEach, self.ended) = (length, asksBeforeEach, ended)
  }

  deinit {
    // The source must be free when the next reader is opened.
    reader = nil
    ended()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    guard let reader else { return 0 }
    return try pass.read(into: buffer, from: reader, length: length, asksBeforeEach: asksBeforeEach)
  }

  // The bytes in the file are not those that are read here.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader?.finish() }
}
