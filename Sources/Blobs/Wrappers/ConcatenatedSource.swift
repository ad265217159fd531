/// Sources one after another, as if they were one: a form, a video in pieces, a folder as an archive.
///
/// Opening asks every piece for its `info`; only the piece that is being read is open. A piece that ends early or
/// changes meanwhile is an error at the latest with its last byte.
public struct ConcatenatedSource: BlobSource {
  private let pieces: [any BlobSource]

  public init(_ pieces: [any BlobSource]) { self.pieces = pieces }

  /// Random if all pieces are.
  public var access: BlobAccess { pieces.allSatisfy { $0.access == .random } ? .random : .sequential }

  /// The length is known if all are; there is a validator if all pieces have one.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at sources in a row")
    return Self.combine(try infos(cancel))
  }

  /// To find an offset behind a piece of unknown length, that piece is read through.
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
      preferredRead: infos.map(\.preferredRead).max() ?? 0)
  }

  /// nil where one is, or where no offset could count that far, whatever a remote source says.
  private static func sum(_ a: Int64?, _ b: Int64?) -> Int64? {
    guard let a, let b, case (let sum, let overflow) = a.addingReportingOverflow(b), !overflow else { return nil }
    return sum
  }

  /// Digests keep it short, and the counts in front of each keep "a" + "bc" apart from "ab" + "c".
  private static func combine(_ validators: [Validator]) -> Validator {
    func digest(_ part: (Validator) -> String) -> String {
      SHA256.hex(of: validators.flatMap { Array("\(part($0).utf8.count):\(part($0))".utf8) })
    }
    return Validator(version: digest(\.version), instance: digest(\.instance))
  }
}

private final class ConcatenatedReader: BlobReader {
  let info: BlobInfo
  private let pieces: [any BlobSource]
  private let infos: [BlobInfo]
  private let cancel: Cancellation
  /// The piece being read, its number, and where in it.
  private var reader: (any BlobReader)?
  private var index = 0
  private var offset: Int64 = 0
  /// One that was opened before its turn, since a file's region was asked for.
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
      // The last piece knows best whether it reaches that far.
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

  /// As a slice the piece can neither end early nor change without an error.
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

  /// That of the longest piece there still is, which is opened for it.
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

  /// nil where it cannot be opened, or not before its turn: reading will tell why.
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
