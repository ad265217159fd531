/// Small files in the formats of cameras and editors, built byte by byte. They contain no pixels.
enum PictureBytes {
  static let taken = "2024:01:02 03:04:05"
  private static let edited = "2025:06:07 08:09:10"

  static func big(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  static func little(_ value: Int, _ count: Int) -> [UInt8] { big(value, count).reversed() }

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  /// A TIFF block whose main directory contains an editing date, and whose Exif directory is at byte `place`.
  static func tiff(exifAt place: Int = 64) -> [UInt8] {
    func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
      little(tag, 2) + little(type, 2) + little(count, 4) + little(value, 4)
    }
    var bytes = Array("II*\0".utf8) + little(8, 4) + little(2, 2)
    bytes += entry(0x0132, 2, 20, 38) + entry(0x8769, 4, 1, place) + little(0, 4)
    bytes += Array(edited.utf8) + [0]
    bytes += zeros(place - bytes.count)
    return bytes + little(1, 2) + entry(0x9003, 2, 20, place + 18) + little(0, 4) + Array(taken.utf8) + [0]
  }

  /// As in a CR3 file: the first directory is the Exif directory, or the main one.
  private static func directory(_ tag: Int, _ text: String) -> [UInt8] {
    Array("II*\0".utf8) + little(8, 4) + little(1, 2) + little(tag, 2) + little(2, 2) + little(20, 4) + little(26, 4)
      + little(0, 4) + Array(text.utf8) + [0]
  }

  static func jpeg(before: Int = 0) -> [UInt8] {
    func segment(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] { [0xFF, kind] + big(content.count + 2, 2) + content }
    var bytes: [UInt8] = [0xFF, 0xD8]
    for _ in 0..<before { bytes += segment(0xE2, zeros(60_000)) }
    return bytes + segment(0xE1, Array("Exif\0\0".utf8) + tiff()) + segment(0xDA, [1]) + [1, 2, 3]
  }

  static func box(_ kind: String, _ content: [UInt8]) -> [UInt8] {
    big(content.count + 8, 4) + Array(kind.utf8) + content
  }

  static func cr3(withExif: Bool = true) -> [UInt8] {
    let id: [UInt8] = [
      0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
    ]
    let canon = box("CNCV", zeros(30)) + box("CMT1", directory(0x0132, edited)) + box("CMT2", directory(0x9003, taken))
    // In every time zone this time is on another day than the date of the picture.
    let head = box("mvhd", zeros(4) + big(1_000_000_000 + 2_082_844_800, 4) + zeros(92))
    return box("ftyp", Array("crx \0\0\0\u{1}crx isom".utf8))
      + box("moov", (withExif ? box("uuid", id + canon) : []) + head)
      + box("mdat", zeros(50))
  }

  static func jxl() -> [UInt8] {
    box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jxl \0\0\0\0jxl ".utf8)) + box("jxlp", zeros(40))
      + box("Exif", big(0, 4) + tiff()) + box("jxlp", zeros(9))
  }

  static func png(parts: Int = 3) -> [UInt8] {
    func chunk(_ kind: String, _ content: [UInt8]) -> [UInt8] {
      big(content.count, 4) + Array(kind.utf8) + content + zeros(4)
    }
    let picture = (0..<parts).flatMap { _ in chunk("IDAT", zeros(8192)) }
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", zeros(13)) + picture
      + chunk("eXIf", tiff()) + chunk("IEND", [])
  }

  static func riffChunk(_ kind: String, _ content: [UInt8]) -> [UInt8] {
    Array(kind.utf8) + little(content.count, 4) + content + zeros(content.count % 2)
  }

  static func riff(_ kind: String, _ content: [UInt8]) -> [UInt8] { riffChunk("RIFF", Array(kind.utf8) + content) }

  static func webp(marked: Bool) -> [UInt8] {
    let mark = marked ? Array("Exif\0\0".utf8) : []
    return riff("WEBP", riffChunk("VP8X", zeros(10)) + riffChunk("VP8 ", zeros(21)) + riffChunk("EXIF", mark + tiff()))
  }

  private static func list(_ kind: String, _ content: [UInt8]) -> [UInt8] {
    riffChunk("LIST", Array(kind.utf8) + content)
  }

  static func avi(_ text: String, in place: String = "IDIT") -> [UInt8] {
    let date = Array(text.utf8)
    let isInfo = place == "ICRD"
    let head = list(
      "hdrl",
      riffChunk("avih", zeros(56)) + list("strl", riffChunk("strh", zeros(56))) + (isInfo ? [] : riffChunk(place, date))
    )
    let info = list("INFO", riffChunk("ISFT", Array("CanonMVI06".utf8)) + (isInfo ? riffChunk(place, date) : []))
    return riff("AVI ", head + info + list("movi", riffChunk("00dc", zeros(3001))))
  }

  static func nikonAVI() -> [UInt8] {
    let tags = little(0x13, 2) + little(20, 2) + Array(taken.utf8) + [0]
    return riff("AVI ", list("hdrl", riffChunk("avih", zeros(56))) + list("ncdt", riffChunk("nctg", tags)))
  }

  static func raf() -> [UInt8] {
    let picture = jpeg()
    let head = Array("FUJIFILMCCD-RAW 0201FF129502X-T1".utf8)
    return head + zeros(84 - head.count) + big(148, 4) + big(picture.count, 4) + zeros(56) + picture + zeros(99)
  }

  static func x3f(withPicture: Bool) -> [UInt8] {
    let head = Array("FOVb".utf8) + zeros(60)
    // 2024-01-02 03:04:05 by the camera's clock, which has no time zone.
    let words = ["ISO", "100", "TIME", "1704164645"]
    var text: [UInt8] = []
    var places: [UInt8] = []
    for word in words {
      places += little(text.count / 2, 4)
      text += word.utf8.flatMap { [$0, 0] } + [0, 0]
    }
    let section: [UInt8]
    if withPicture {
      section = Array("SECi".utf8) + zeros(4) + little(2, 4) + little(18, 4) + zeros(12) + jpeg()
    } else {
      section =
        Array("SECp".utf8) + zeros(4) + little(2, 4) + little(0, 4) + zeros(4) + little(text.count / 2, 4) + places
        + text
    }
    let directory =
      Array("SECd".utf8) + zeros(4) + little(1, 4) + little(head.count, 4) + little(section.count, 4)
      + Array((withPicture ? "IMA2" : "PROP").utf8)
    return head + section + directory + little(head.count + section.count, 4)
  }

  static func crw() -> [UInt8] {
    func heap(_ entries: [(tag: Int, content: [UInt8])]) -> [UInt8] {
      var bytes: [UInt8] = []
      var table = little(entries.count, 2)
      for entry in entries {
        table += little(entry.tag, 2) + little(entry.content.count, 4) + little(bytes.count, 4)
        bytes += entry.content
      }
      return bytes + table + little(bytes.count, 4)
    }
    let time = heap([(0x180E, little(1_704_164_645, 4) + zeros(8))])
    return Array("II".utf8) + little(26, 4) + Array("HEAPCCDR".utf8) + zeros(12)
      + heap([(0x2005, zeros(70)), (0x300A, heap([(0x2804, zeros(3)), (0x300B, time)]))])
  }

  static func psd() -> [UInt8] {
    func resource(_ id: Int, _ name: String, _ content: [UInt8]) -> [UInt8] {
      let name = big(name.utf8.count, 1) + Array(name.utf8)
      return Array("8BIM".utf8) + big(id, 2) + name + zeros(name.count % 2) + big(content.count, 4) + content
        + zeros(content.count % 2)
    }
    let resources = resource(1005, "", zeros(16)) + resource(1039, "abc", zeros(7)) + resource(1058, "", tiff())
    return Array("8BPS".utf8) + big(1, 2) + zeros(20) + big(4, 4) + zeros(4) + big(resources.count, 4) + resources
  }

  /// The transport stream of an AVCHD camera. `prefix`: bytes before each packet; 4 in a file on a card.
  static func avchd(prefix: Int) -> [UInt8] {
    let id: [UInt8] = [
      0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66,
    ]
    let notes =
      id + Array("MDPM".utf8) + [3, 0x13, 1, 2, 3, 4, 0x18, 0x02, 0x20, 0x24, 0x01, 0x19, 0x02, 0x03, 0x04, 0x05]
    let head: [UInt8] = [0, 0, 1, 0xE0, 0, 0, 0x80, 0, 0]
    // The padding makes the notes cross the end of a packet.
    let video = head + [UInt8](repeating: 0xAA, count: 160) + [0, 0, 1, 6, 5, UInt8(notes.count)] + notes + zeros(400)
    var bytes: [UInt8] = []
    for (number, start) in stride(from: 0, to: video.count - 183, by: 184).enumerated() {
      bytes += zeros(prefix) + [0x47, number == 0 ? 0x50 : 0x10, 0x11, 0x10] + video[start..<start + 184]
      bytes += zeros(prefix) + [0x47, 0x40, 0x00, 0x10] + [UInt8](repeating: 0xFF, count: 184)
    }
    return bytes
  }

  /// Each of the formats, with its name. All dates are the same second.
  static let all: [(name: String, bytes: [UInt8])] = [
    ("TIFF", tiff()), ("JPEG", jpeg()), ("CR3", cr3()), ("JPEG XL", jxl()), ("PNG", png()),
    ("WebP", webp(marked: false)), ("WebP with a mark", webp(marked: true)),
    ("AVI", avi("Tue Jan  2 03:04:05 2024\n\0")),
    ("AVI with slashes", avi("2024/01/02  3:04:05\0")), ("AVI with dashes", avi("2024-01-02  03:04:05\0\0")),
    ("AVI with notes", avi("2024:01:02 03:04:05", in: "ICRD")), ("AVI of a Nikon", nikonAVI()), ("RAF", raf()),
    ("X3F", x3f(withPicture: true)), ("X3F without a picture", x3f(withPicture: false)), ("CRW", crw()), ("PSD", psd()),
    ("AVCHD", avchd(prefix: 4)), ("AVCHD without stamps", avchd(prefix: 0)),
  ]
}
