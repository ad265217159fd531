import Blobs

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// When a picture was taken, by the clock of the place where that was: a camera knows no time zones.
public struct CaptureDate: Sendable, Hashable, CustomStringConvertible {
  public var year: Int
  public var month: Int
  public var day: Int
  public var hour: Int
  public var minute: Int
  public var second: Int

  public init(_ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0) {
    (self.year, self.month, self.day) = (year, month, day)
    (self.hour, self.minute, self.second) = (hour, minute, second)
  }

  /// `2024:01:02 03:04:05`, as EXIF has it; nil for what is no date: a camera whose clock was never set writes zeros
  /// or spaces.
  public init?(exif text: some Collection<UInt8>) {
    let bytes = Array(text.prefix(19))
    guard bytes.count == 19 else { return nil }
    func number(_ start: Int, _ count: Int) -> Int? {
      bytes[start..<(start + count)].reduce(0 as Int?) { sum, byte in
        sum.flatMap { (0x30...0x39).contains(byte) ? $0 * 10 + Int(byte) - 0x30 : nil }
      }
    }
    guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
      let minute = number(14, 2), let second = number(17, 2), (1800...9999).contains(year), (1...12).contains(month),
      (1...31).contains(day), hour < 24, minute < 60, second <= 60
    else { return nil }
    self.init(year, month, day, hour, minute, second)
  }

  public var description: String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(year)-\(two(month))-\(two(day)) \(two(hour)):\(two(minute)):\(two(second))"
  }
}

extension CaptureDate {
  /// A moment by the clock of this machine.
  public init(secondsSince1970: Int64) {
    var seconds = time_t(secondsSince1970)
    var parts = tm()
    localtime_r(&seconds, &parts)
    self.init(
      Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1, Int(parts.tm_mday), Int(parts.tm_hour), Int(parts.tm_min),
      Int(parts.tm_sec))
  }

  /// What a file says of itself: EXIF in JPEG, HEIC, AVIF and TIFF, which most RAW formats are; in a film its head,
  /// which counts in UTC and is taken by this machine's clock. nil where it says nothing.
  ///
  /// Reads a bounded number of bytes, whatever the file claims, and blocks.
  public static func read(from source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> CaptureDate? {
    if let tiff = tiff(of: source, cancel), let date = TIFFDirectory.captureDate(in: tiff) { return date }
    // Not to be had, or not told: then there is nothing to look in.
    let bytes = BytesAt(source: source, cancel: cancel)
    guard let head = bytes(0, 8), isBoxes(head), let length = (try? source.info(cancel))?.length else { return nil }
    return BoxFile(bytes: bytes).filmed(upTo: length).map { CaptureDate(secondsSince1970: $0) }
  }

  /// The block in which a picture tells about itself, or as much of it as is read; it may be none.
  static func tiff(of source: any BlobSource, _ cancel: Cancellation) -> ArraySlice<UInt8>? {
    let bytes = BytesAt(source: source, cancel: cancel)
    guard let head = bytes(0, most) else { return nil }
    if let tiff = exifBlock(inJPEG: head) { return tiff }
    if !isBoxes(head) { return head[...] }
    guard let length = (try? source.info(cancel))?.length, let place = BoxFile(bytes: bytes).exif(upTo: length) else {
      return nil
    }
    return bytes(place.lowerBound, min(place.count, most))?[...]
  }

  private static func isBoxes(_ head: [UInt8]) -> Bool {
    head.count >= 8 && boxes.contains { head[4..<8].elementsEqual($0.utf8) }
  }

  private static let most = 64 << 10
  /// What a HEIC file or a film may begin with.
  private static let boxes = ["ftyp", "moov", "mdat", "wide", "free"]

  /// The TIFF block of a JPEG's APP1 segment. JPEG: ITU T.81 Annex B; Exif 2.32 §4.7.2.
  private static func exifBlock(inJPEG bytes: [UInt8]) -> ArraySlice<UInt8>? {
    guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
    let mark = Array("Exif\0\0".utf8)
    var place = 2
    while place + 4 <= bytes.count, bytes[place] == 0xFF {
      let kind = bytes[place + 1]
      // Fill bytes; then the picture itself, before which all of this stands.
      if kind == 0xFF {
        place += 1
        continue
      }
      if kind == 0xDA || kind == 0xD9 { return nil }
      let length = Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
      if length < 2 { return nil }
      let segment = bytes[min(place + 4, bytes.count)..<min(place + 2 + length, bytes.count)]
      if kind == 0xE1, segment.starts(with: mark) { return segment.dropFirst(mark.count) }
      place += 2 + length
    }
    return nil
  }
}
