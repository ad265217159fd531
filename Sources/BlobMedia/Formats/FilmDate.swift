import Blobs
import Platform

extension BoxFile {
  /// When a film was taken. Dates in local time come first: Apple's metadata, the `©day` entry of the user data, and
  /// Sony's metadata, all of which usually have an offset from UTC. The film's header (`mvhd`) counts in UTC without an
  /// offset, so it is converted to this machine's time zone.
  var dateOfFilm: CaptureDate? {
    let file: Range<Int64> = 0..<bytes.end
    let movie = box("moov", in: file).map { $0.start..<$0.end }
    let local = movie.flatMap { dateOfApple(in: $0) ?? dayOfUserData(in: $0) } ?? dateOfSony(in: file)
    return local ?? filmed(upTo: bytes.end).map { CaptureDate(secondsSince1970: $0) }
  }

  /// `com.apple.quicktime.creationdate`, which iPhones and newer Android cameras write. The keys are numbered from 1,
  /// and an item has its key's number in the place of a box type. QuickTime File Format Specification, "Metadata".
  private func dateOfApple(in movie: Range<Int64>) -> CaptureDate? {
    guard let meta = box("meta", in: movie) else { return nil }
    // The box has version and flags in ISO 14496-12, and none in QuickTime.
    let insides = [meta.start, meta.start + 4].filter { $0 < meta.end }.map { $0..<meta.end }
    for inside in insides {
      guard let keys = box("keys", in: inside), let list = box("ilst", in: inside),
        let number = number(of: "com.apple.quicktime.creationdate", in: keys),
        let item = box(kind: bigEndian(number), in: list.start..<list.end),
        let data = box("data", in: item.start..<item.end), data.end - data.start > 8
      else { continue }
      // The value follows its type and its language, 4 bytes each.
      return text(data.start + 8, data.end).flatMap { CaptureDate(iso8601: $0) }
    }
    return nil
  }

  /// The index of a key in the list of keys, from 1.
  private func number(of key: String, in keys: Box) -> UInt32? {
    guard keys.end - keys.start > 8, let count = bytes.big(keys.start + 4, 4) else { return nil }
    var place = keys.start + 8
    for number in 1...UInt32(max(1, min(count, 256))) {
      guard let entry = box(at: place, before: keys.end) else { return nil }
      if text(entry.start, entry.end)?.elementsEqual(key.utf8) == true { return number }
      place = entry.end
    }
    return nil
  }

  /// `©day` in the user data: length of the text and language, 2 bytes each, then the text.
  private func dayOfUserData(in movie: Range<Int64>) -> CaptureDate? {
    guard let user = box("udta", in: movie), let day = box(kind: [0xA9] + Array("day".utf8), in: user.start..<user.end),
      day.end - day.start > 4
    else { return nil }
    return text(day.start + 4, day.end).flatMap { CaptureDate(iso8601: $0) }
  }

  /// `<CreationDate value="…"/>` in the XML that Sony's cameras append after the film.
  private func dateOfSony(in file: Range<Int64>) -> CaptureDate? {
    guard let meta = box("meta", in: file), meta.end - meta.start > 4,
      let xml = box("xml ", in: (meta.start + 4)..<meta.end), xml.end - xml.start > 4,
      let text = bytes(xml.start + 4, Int(min(xml.end - xml.start - 4, 64 << 10)))
    else { return nil }
    let mark = Array("<CreationDate value=\"".utf8)
    guard let place = text.indices.first(where: { text[$0...].starts(with: mark) }) else { return nil }
    return CaptureDate(iso8601: text[(place + mark.count)...].prefix { $0 != UInt8(ascii: "\"") })
  }

  private func text(_ start: Int64, _ end: Int64) -> [UInt8]? { bytes(start, Int(min(end - start, 256))) }

  private func bigEndian(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - $0 * 8)) }
  }
}

extension CaptureDate {
  /// Parses `2024-01-02T03:04:05+02:00`. The written time is already local, so the offset is ignored. A time with `Z`
  /// is converted from UTC to this machine's time zone. nil if the text is not a date with a time.
  init?(iso8601 text: some Collection<UInt8>) {
    let bytes = Array(text.prefix(40))
    guard bytes.count >= 19, bytes[4] == UInt8(ascii: "-"), let date = CaptureDate(exif: bytes) else { return nil }
    let isUTC = bytes[19...].drop { $0 == UInt8(ascii: ".") || (48...57).contains($0) }.first == UInt8(ascii: "Z")
    self = isUTC ? CaptureDate(secondsSince1970: date.secondsInUTC) : date
  }

  private var secondsInUTC: Int64 {
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
    return Int64(timegm(&parts))
  }
}
