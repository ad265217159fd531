/// The stream of an AVCHD camera (`.MTS`, `.M2TS`): packets of 188 bytes, on cards with four more before each.
/// ITU-T H.222.0 §2.4.3.
///
/// The camera notes the time in the video itself, in a message to which decoders pay no attention. ITU-T H.264 §D.1.7.
struct TransportStream {
  private static let packet = 188
  private let bytes: BytesAt
  /// Bytes before each packet.
  private let prefix: Int

  /// nil: it is none.
  init?(_ bytes: BytesAt) {
    self.bytes = bytes
    guard let head = bytes(0, 2 * (Self.packet + 4)), head.count == 2 * (Self.packet + 4),
      let prefix = [0, 4].first(where: { head[$0] == 0x47 && head[2 * $0 + Self.packet] == 0x47 })
    else { return nil }
    self.prefix = prefix
  }

  var date: CaptureDate? {
    let notes = Self.notes(in: Self.unescaped(video))
    guard let month = notes[0x18], let day = notes[0x19] else { return nil }
    let numbers = (month.dropFirst() + day).map { Int($0 >> 4) * 10 + Int($0 & 15) }
    return CaptureDate(
      checked: numbers[0] * 100 + numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6])
  }

  /// The beginning of the first video in it.
  private var video: [UInt8] {
    guard let block = bytes(0, BytesAt.most) else { return [] }
    var wanted: Int?
    var video: [UInt8] = []
    for start in stride(from: prefix, through: block.count - Self.packet, by: Self.packet + prefix) {
      let end = start + Self.packet
      guard block[start] == 0x47 else { break }
      let stream = Int(block[start + 1] & 0x1F) << 8 | Int(block[start + 2])
      let fields = block[start + 3] >> 4
      // A field before the payload has its length in front.
      let payload = fields & 2 == 0 ? start + 4 : start + 5 + Int(block[start + 4])
      guard fields & 1 == 1, payload < end else { continue }
      let isStart =
        block[start + 1] & 0x40 != 0 && payload + 4 <= end && block[payload..<payload + 3].elementsEqual([0, 0, 1])
      if wanted == nil, isStart, (0xE0...0xEF).contains(block[payload + 3]) { wanted = stream }
      if stream == wanted { video += block[payload..<end] }
    }
    return video
  }

  /// Without the bytes that keep three zeros in a row from looking like a start. ITU-T H.264 §7.4.1.
  private static func unescaped(_ video: [UInt8]) -> [UInt8] {
    var plain: [UInt8] = []
    plain.reserveCapacity(video.count)
    var zeros = 0
    for byte in video {
      if zeros >= 2, byte == 3 {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      plain.append(byte)
    }
    return plain
  }

  /// The camera's notes: each a number and four bytes.
  private static func notes(in video: [UInt8]) -> [UInt8: [UInt8]] {
    var place = 0
    while place + mark.count < video.count {
      guard video[place] == mark[0], video[place..<place + mark.count].elementsEqual(mark) else {
        place += 1
        continue
      }
      let list = video[(place + mark.count + 1)...].prefix(Int(video[place + mark.count]) * 5)
      var notes: [UInt8: [UInt8]] = [:]
      for start in stride(from: list.startIndex, through: list.endIndex - 5, by: 5) {
        notes[list[start]] = Array(list[start + 1..<start + 5])
      }
      return notes
    }
    return [:]
  }

  /// The UUID of such a message, and what it begins with.
  private static let mark: [UInt8] =
    [0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66]
    + Array("MDPM".utf8)
}
