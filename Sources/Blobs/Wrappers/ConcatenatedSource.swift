/// Concatenates sources into one: a multipart form, a video in pieces, a folder as an archive.
///
/// Opening calls `info` of every piece, but only the piece being read is open. A piece that ends early or changes
/// meanwhile throws an error, at the latest with its last byte.
public struct ConcatenatedSource: BlobSource {
  private let pieces: [any BlobSource]

  /// Concatenates sources in this order, without opening them.
  public init(_ pieces: [any BlobSource]) { self.pieces = pieces }

  /// Random if all pieces are random.
  public var access: BlobAccess { pieces.allSatisfy { $0.access == .random } ? .random : .sequential }

  /// The length is known if all lengths are known; there is a validator if all pieces have one.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at sources in a row")
    return Self.combine(try infos(cancel))
  }

  /// If `offset` lies behind a piece of unknown length, that piece is read through to measure it.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open sources in a row")
    let infos = try infos(cancel)
    let reader = ConcatenatedReader(pieces, infos, Self.combine(infos), cancel)
    try reader.open(at: offset)
    return reader
  }

  private func infos(_ cancel: Cancellation) throws(BlobError) -> [BlobInfo] {
    var infos: [BlobInfo] = []
    for piece in pieces { infos.append(try piece.info(cancel)) }
    return infos
  }

  private static func combine(_ infos: [BlobInfo]) -> BlobInfo {
    let validators = infos.compactMap(\.validator)
    return BlobInfo(
      length: infos.reduce(0) { sum($0, $1.length) },
      validator: validators.count == infos.count ? combine(validators) : nil,
      preferredRead: infos.map(\.preferredRead).max() ?? 0, isSlowToSeek: infos.contains(where: \.isSlowToSeek))
  }

  /// nil if either is nil, or if the sum overflows, since a remote source may claim any length.
  private static func sum(_ a: Int64?, _ b: Int64?) -> Int64? {
    guard let a, let b, case (let sum, let overflow) = a.addingReportingOverflow(b), !overflow else { return nil }
    return sum
  }

  /// Digests keep the validator short. The byte count in front of each part distinguishes "a" + "bc" from "ab" + "c".
  private static func combine(_ validators: [Validator]) -> Validator {
    func digest(_ part: (Validator) -> String) -> String {
      var text: [UInt8] = []
      for validator in validators {
        let word = part(validator)
        text += String(word.utf8.count).utf8
        text.append(UInt8(ascii: ":"))
        text += word.utf8
      }
      return SHA256.hex(of: text)
    }
    return Validator(version: digest(\.version), instance: digest(\.instance))
  }
}

private final class ConcatenatedReader: BlobReader {
  let info: BlobInfo
  private let pieces: [any BlobSource]
  private let infos: [BlobInfo]
  private let cancel: Cancellation
  /// The reader of the current piece, the piece's index, and the offset in it.
  private var reader: (any BlobReader)?
  private var index = 0
  private var offset: Int64 = 0
  /// A piece that was opened early because `fileRegion` was called.
  private var ahead: (index: Int, reader: any BlobReader)?

  init(_ pieces: [any BlobSource], _ infos: [BlobInfo], _ info: BlobInfo, _ cancel: Cancellation) {
    self.pieces = pieces
    self.infos = infos
    self.info = info
    self.cancel = cancel
  }

  func open(at offset: Int64) throws(BlobError) {
    var left = offset
    while left > 0, index < pieces.count {
      var length = infos[index].length
      if length == nil && index < pieces.count - 1 { length = try measure(index) }
      // A last piece of unknown length checks by itself whether it reaches that far.
      guard let length, left >= length else { break }
      left -= length
      index += 1
    }
    if offset < 0 || index == pieces.count && left > 0 {
      throw BlobError(.outOfRange, "open sources in a row at byte \(offset): they have \(offset - left)")
    }
    if index < pieces.count { reader = try open(index, at: left) }
    self.offset = left
  }

  /// Opened as a slice, a piece can neither end early nor change without an error.
  private func open(_ index: Int, at offset: Int64) throws(BlobError) -> any BlobReader {
    let length = infos[index].length.map { $0 - offset }
    return try BlobSlice(pieces[index], start: offset, length: length, validator: infos[index].validator).open(cancel)
  }

  private func measure(_ index: Int) throws(BlobError) -> Int64 {
    let reader = try BlobSlice(pieces[index], validator: infos[index].validator).open(cancel)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var length: Int64 = 0
    while true {
      try cancel.check("measure a source of unknown length")
      let count = try reader.read(into: buffer)
      if count == 0 { return length }
      length += Int64(count)
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    while index < pieces.count {
      if reader == nil { reader = takeAhead() }
      if reader == nil { reader = try open(index, at: 0) }
      let count = try reader!.read(into: buffer)
      offset += Int64(count)
      if count > 0 { return count }
      if index == pieces.count - 1 { return 0 }
      reader = nil
      index += 1
      offset = 0
    }
    return 0
  }

  private func takeAhead() -> (any BlobReader)? {
    guard let ahead, ahead.index == index else { return nil }
    self.ahead = nil
    return ahead.reader
  }

  /// The region of the longest remaining piece, which is opened for this.
  func fileRegion() -> FileRegion? {
    let left = (index..<pieces.count).map { number in
      infos[number].length.map { number == index ? $0 - offset : $0 }
    }
    guard let most = left.compactMap(\.self).max(), let distance = left.firstIndex(of: most) else { return nil }
    var start: Int64 = 0
    for length in left[..<distance] {
      guard let length else { return nil }
      start = start.addingClamped(length)
    }
    guard var region = piece(index + distance)?.fileRegion() else { return nil }
    region.length = region.length ?? (most - region.start)
    region.start = region.start.addingClamped(start)
    return region
  }

  /// nil if the piece cannot be opened, or only in order: a later `read` throws the reason.
  private func piece(_ number: Int) -> (any BlobReader)? {
    if number == index, let reader { return reader }
    guard pieces[number].access == .random else { return nil }
    if ahead?.index != number { ahead = (try? open(number, at: 0)).map { (number, $0) } }
    return ahead?.reader
  }

  func finish() throws(BlobError) {
    try reader?.finish()
    try ahead?.reader.finish()
  }
}
