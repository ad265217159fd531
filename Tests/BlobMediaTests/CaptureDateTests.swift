import BlobMedia
import Blobs
import Testing

@Suite struct CaptureDateTests {
  /// A TIFF block with DateTime, and with DateTimeOriginal in an Exif directory.
  private func tiff(little: Bool, _ date: String?, original: String?, magic: Int = 42) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      let bytes = (0..<count).map { UInt8(value >> ($0 * 8) & 0xFF) }
      return little ? bytes : bytes.reversed()
    }
    func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
      number(tag, 2) + number(type, 2) + number(count, 4) + number(value, 4)
    }
    func text(_ date: String?) -> [UInt8] { Array((date ?? "").utf8) + [0] }
    let main = 8, exif = main + 2 + 3 * 12 + 4, texts = exif + 2 + 12 + 4
    var bytes = Array((little ? "II" : "MM").utf8) + number(magic, 2) + number(main, 4)
    bytes += number(3, 2) + entry(0x0100, 4, 1, 640)
    bytes += date == nil ? entry(0x0101, 4, 1, 480) : entry(0x0132, 2, 20, texts)
    bytes += original == nil ? entry(0x0103, 3, 1, 1) : entry(0x8769, 4, 1, exif)
    bytes += number(0, 4) + number(1, 2) + entry(0x9003, 2, 20, texts + text(date).count) + number(0, 4)
    return bytes + text(date) + text(original)
  }

  private func jpeg(_ exif: [UInt8]) -> [UInt8] {
    func segment(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
      let length = content.count + 2
      return [0xFF, kind, UInt8(length >> 8), UInt8(length & 0xFF)] + content
    }
    return [0xFF, 0xD8] + segment(0xE0, Array("JFIF\0".utf8) + [1, 2, 0, 0, 1, 0, 1, 0, 0])
      + segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0<x/>".utf8))
      + [0xFF] + segment(0xE1, Array("Exif\0\0".utf8) + exif) + segment(0xDA, [1]) + [1, 2, 3]
  }

  private func date(_ bytes: [UInt8]) -> CaptureDate? { CaptureDate.read(from: DataSource(bytes)) }

  @Test(arguments: [true, false]) func exifTellsWhenAPictureWasTaken(_ little: Bool) {
    let block = tiff(little: little, "2025:06:07 08:09:10", original: "2024:01:02 03:04:05")
    #expect(date(jpeg(block)) == CaptureDate(2024, 1, 2, 3, 4, 5))
    #expect(date(block) == CaptureDate(2024, 1, 2, 3, 4, 5))
    #expect(date(tiff(little: little, "2025:06:07 08:09:10", original: nil)) == CaptureDate(2025, 6, 7, 8, 9, 10))
    #expect(
      date(tiff(little: little, nil, original: "2024:01:02 03:04:05", magic: 0x55)) == CaptureDate(2024, 1, 2, 3, 4, 5))
  }

  @Test(arguments: ["0000:00:00 00:00:00", "    :  :     :  :  ", "2024:13:01 00:00:00", "2024:01:01 25:00:00", "now"])
  func aDateOfAnUnsetClockIsNoCaptureDate(_ text: String) {
    #expect(
      date(tiff(little: true, nil, original: text + String(repeating: " ", count: max(0, 19 - text.count)))) == nil)
    #expect(CaptureDate(exif: Array(text.utf8)) == nil)
  }

  @Test func bytesThatAreNoPictureHaveNoCaptureDate() {
    for bytes: [UInt8] in [[], [0xFF], [0xFF, 0xD8], [0xFF, 0xD8, 0xFF, 0xE1], Array("II".utf8), Array("text".utf8)] {
      #expect(date(bytes) == nil)
    }
  }

  /// A file that is truncated anywhere, or has any byte changed, causes no crash.
  @Test func noOffsetIsTrusted() {
    let whole = jpeg(tiff(little: false, "2025:06:07 08:09:10", original: "2024:01:02 03:04:05"))
    readDamaged(whole)
  }

  /// Reads the date of `file` truncated at every offset, and with every byte changed: no read may trap.
  private func readDamaged(_ file: [UInt8]) {
    for count in 0..<file.count { _ = date(Array(file.prefix(count))) }
    for place in file.indices {
      for value: UInt8 in [0, 1, 0x7F, 0xFF] {
        var bytes = file
        bytes[place] = value
        _ = date(bytes)
      }
    }
  }

  private func big(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(value >> ($0 * 8) & 0xFF) }
  }
  private func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
    big(content.count + 8, 4) + Array(kind.utf8) + content
  }

  /// As a phone writes it: two items, the second of which is the Exif block behind the picture.
  private func heic(_ exif: [UInt8]) -> [UInt8] {
    func info(_ id: Int, _ kind: String) -> [UInt8] {
      box("infe", [2, 0, 0, 0] + big(id, 2) + big(0, 2) + Array(kind.utf8) + [0])
    }
    let head = box("ftyp", Array("heic".utf8) + big(0, 4) + Array("mif1heic".utf8))
    let infos = box("iinf", [0, 0, 0, 0] + big(2, 2) + info(1, "hvc1") + info(2, "Exif"))
    func meta(_ place: Int) -> [UInt8] {
      func item(_ id: Int, _ start: Int, _ count: Int) -> [UInt8] {
        big(id, 2) + big(0, 2) + big(0, 2) + big(1, 2) + big(start, 4) + big(count, 4)
      }
      let places = [1, 0, 0, 0, 0x44, 0] + big(2, 2) + item(1, place, 100) + item(2, place + 100, exif.count + 10)
      return box("meta", [0, 0, 0, 0] + box("hdlr", [0, 0, 0, 0]) + infos + box("iloc", places))
    }
    let place = head.count + meta(0).count + 8
    let data = [UInt8](repeating: 7, count: 100) + big(6, 4) + Array("Exif\0\0".utf8) + exif
    return head + meta(place) + box("mdat", data)
  }

  @Test func theCaptureDateIsReadFromHEIC() {
    let block = tiff(little: false, "2025:06:07 08:09:10", original: "2024:01:02 03:04:05")
    #expect(date(heic(block)) == CaptureDate(2024, 1, 2, 3, 4, 5))
  }

  /// A film's header may be at its end.
  @Test(arguments: [0, 1]) func theCaptureDateIsReadFromFilms(_ version: Int) {
    let seconds = 1_704_164_645
    let times = big(seconds + 2_082_844_800, version == 1 ? 8 : 4)
    let head = box(
      "moov", box("free", [1, 2, 3]) + box("mvhd", [UInt8(version), 0, 0, 0] + times + times + big(600, 4)))
    let film = box("ftyp", Array("qt  ".utf8) + big(0, 4)) + box("mdat", [UInt8](repeating: 9, count: 200_000)) + head
    #expect(date(film) == CaptureDate(secondsSince1970: Int64(seconds)))
    let unset = box("ftyp", Array("qt  ".utf8)) + box("moov", box("mvhd", [UInt8](repeating: 0, count: 100)))
    #expect(date(unset) == nil)
  }

  private static let midnight = "2024-01-02T00:30:05"

  /// The local time counts, whatever the offset from UTC is and whatever the time zone of this machine.
  @Test(arguments: ["+0900", "-08:00", "+00:00", "", ".000+1400"]) func aFilmsLocalTimeCounts(_ offset: String) {
    let text = Array((Self.midnight + offset).utf8)
    for film in Self.films(text) { #expect(date(film) == CaptureDate(2024, 1, 2, 0, 30, 5)) }
  }

  @Test func aFilmsTimeInUTCIsTakenByThisMachinesClock() {
    for film in Self.films(Array((Self.midnight + "Z").utf8)) {
      #expect(date(film) == CaptureDate(secondsSince1970: 1_704_155_405))
    }
  }

  @Test(arguments: ["", "2024", "2024-01-02", "2024:01:02 00:30:05", "2024-13-02T00:30:05+0100"])
  func aFilmWithoutSuchATimeHasThatOfItsHead(_ text: String) {
    for film in Self.films(Array(text.utf8)) { #expect(date(film) == CaptureDate(secondsSince1970: 1_000_000_000)) }
  }

  @Test func noBoxOfAFilmIsTrusted() {
    for film in Self.films(Array((Self.midnight + "+0900").utf8)) {
      readDamaged(film)
    }
  }

  /// Films with `text` in QuickTime's metadata, in the metadata of ISO 14496-12, in the user data, and in Sony's
  /// metadata. Their headers contain another time.
  private static func films(_ text: [UInt8]) -> [[UInt8]] {
    func big(_ number: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(number >> ((count - 1 - $0) * 8) & 0xFF) }
    }
    func box(_ kind: [UInt8], _ content: [UInt8]) -> [UInt8] { big(content.count + 8, 4) + kind + content }
    func box(_ kind: String, _ content: [UInt8]) -> [UInt8] { box(Array(kind.utf8), content) }
    let zeros = [UInt8](repeating: 0, count: 4)
    let names = ["com.apple.quicktime.make", "com.apple.quicktime.creationdate"]
    let keys = box("keys", zeros + big(2, 4) + names.flatMap { box("mdta", Array($0.utf8)) })
    func item(_ number: Int, _ value: [UInt8]) -> [UInt8] {
      box(big(number, 4), box("data", big(1, 4) + zeros + value))
    }
    let list = box("ilst", item(1, Array("Apple".utf8)) + item(2, text))
    let day = box([0xA9] + Array("day".utf8), big(text.count, 2) + big(0, 2) + text)
    let xml = Array("<?xml?><NonRealTimeMeta><CreationDate value=\"".utf8) + text + Array("\"/></NonRealTimeMeta>".utf8)
    let head = box("mvhd", zeros + big(1_000_000_000 + 2_082_844_800, 4) + zeros)
    let start = box("ftyp", Array("qt  ".utf8) + zeros)
    return [
      start + box("moov", head + box("meta", keys + list)),
      start + box("moov", head + box("meta", zeros + keys + list)),
      start + box("moov", head + box("udta", day)),
      start + box("mdat", zeros) + box("moov", head) + box("meta", zeros + box("xml ", zeros + xml)),
    ]
  }

  @Test func noBoxIsTrusted() {
    let whole = heic(tiff(little: true, "2025:06:07 08:09:10", original: "2024:01:02 03:04:05"))
    readDamaged(whole)
  }
}
