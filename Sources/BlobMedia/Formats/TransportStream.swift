/// The MPEG transport stream of an AVCHD camera (`.MTS`, `.M2TS`). It consists of packets of 188 bytes; on memory cards
/// four more bytes precede each packet. ITU-T H.222.0 §2.4.3.
///
/// The camera stores the date in the video, in an SEI message that decoders ignore. ITU-T H.264 §D.1.7.
struct TransportStream {
  private static let packet = 188
  private let bytes: RandomAccessBytes
  /// Bytes before each packet: 0 or 4.
  private let prefix: Int

  /// nil if the file is not a transport stream.
  init?(_ bytes: RandomAccessBytes) {
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

  /// The start of the first video stream.
  private var video: [UInt8] {
    guard let block = bytes(0, RandomAccessBytes.most) else { return [] }
    var wanted: Int?
    var video: [UInt8] = []
    for start in stride(from: prefix, through: block.count - Self.packet, by: Self.packet + prefix) {
      let end = start + Self.packet
      guard block[start] == 0x47 else { break }
      let stream = Int(block[start + 1] & 0x1F) << 8 | Int(block[start + 2])
      let fields = block[start + 3] >> 4
      // An adaptation field before the payload begins with its length.
      let payload = fields & 2 == 0 ? start + 4 : start + 5 + Int(block[start + 4])
      guard fields & 1 == 1, payload < end else { continue }
      let isStart =
        block[start + 1] & 0x40 != 0 && payload + 4 <= end && block[payload..<payload + 3].elementsEqual([0, 0, 1])
      if wanted == nil, isStart, (0xE0...0xEF).contains(block[payload + 3]) { wanted = stream }
      if stream == wanted { video += block[payload..<end] }
    }
    return video
  }

  /// Removes the emulation prevention bytes. ITU-T H.264 §7.4.1.
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

  /// The camera's metadata entries: a tag of one byte and a value of four bytes each.
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

  /// The UUID of the SEI message and the start of its payload.
  private static let mark: [UInt8] =
    [0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66]
    + Array("MDPM".utf8)
}
