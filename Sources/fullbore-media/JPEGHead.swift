import BlobMedia
import Platform

/// The metadata segments before the image data of a JPEG: EXIF, XMP, colour profile and IPTC of the original, adjusted
/// to the rendering. Exif 2.32 §4.7; XMP Specification Part 3 §1.1.3; ICC.1:2010 Annex B.4.
struct JPEGHead {
  private(set) var bytes: [UInt8] = []
  /// Maximum length of a segment's content in bytes.
  private static let most = 65_533

  init(_ picture: Picture, width: Int, height: Int) throws(Complaint) {
    if var exif = picture.exif {
      exif.describe(width: width, height: height)
      try add(0xE1, Array("Exif\0\0".utf8), exif.bytes, "EXIF")
    }
    if let xmp = picture.xmp {
      try add(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8), XMPText.upright(xmp), "XMP")
    }
    if let profile = picture.profile { try add(profile: profile) }
    if let iptc = picture.iptc { try add(0xED, [], iptc, "IPTC") }
  }

  private mutating func add(profile: [UInt8]) throws(Complaint) {
    let name = Array("ICC_PROFILE\0".utf8)
    let room = Self.most - name.count - 2
    let count = (profile.count + room - 1) / room
    guard count <= 255 else { throw Self.tooLarge("colour profile", profile.count) }
    for index in 0..<count {
      let piece = Array(profile[(index * room)..<min(profile.count, (index + 1) * room)])
      try add(0xE2, name + [UInt8(index + 1), UInt8(count)], piece, "colour profile")
    }
  }

  private mutating func add(_ marker: UInt8, _ name: [UInt8], _ content: [UInt8], _ what: String) throws(Complaint) {
    let count = name.count + content.count
    guard count <= Self.most else { throw Self.tooLarge(what, content.count) }
    bytes += [0xFF, marker, UInt8((count + 2) >> 8), UInt8((count + 2) & 0xFF)] + name + content
  }

  private static func tooLarge(_ what: String, _ count: Int) -> Complaint {
    Complaint("its \(what) of \(count) bytes does not fit into a JPEG", status: Complaint.refused)
  }
}

/// Edits the orientation in an XMP packet.
enum XMPText {
  /// Sets the orientation to upright, in attribute and element syntax.
  static func upright(_ packet: [UInt8]) -> [UInt8] {
    var packet = packet
    for mark in ["tiff:Orientation=\"", "tiff:Orientation='", "<tiff:Orientation>"] {
      let mark = Array(mark.utf8)
      var rest = packet[...]
      while let found = rest.firstRange(of: mark) {
        let place = found.upperBound
        if place < packet.count, (UInt8(ascii: "1")...UInt8(ascii: "8")).contains(packet[place]) {
          packet[place] = UInt8(ascii: "1")
        }
        rest = packet[place...]
      }
    }
    return packet
  }
}

/// Writes the output of libvips, with the metadata segments inserted after the first markers.
final class JPEGOutput {
  private let descriptor: Int32
  private let head: JPEGHead
  private var start: [UInt8] = []
  private var hasHead = false

  init(_ descriptor: Int32, _ head: JPEGHead) {
    self.descriptor = descriptor
    self.head = head
  }

  /// Returns the number of bytes consumed; fewer than `count` mean failure.
  func take(_ bytes: UnsafeRawPointer?, _ count: Int64) -> Int64 {
    let piece = UnsafeRawBufferPointer(start: bytes, count: Int(count))
    if hasHead { return put(piece) ? count : -1 }
    start += piece
    // The metadata follows the start-of-image marker and the JFIF segment, which comes first if there is one.
    guard start.count >= 6 else { return count }
    var place = 2
    if start[2] == 0xFF, start[3] == 0xE0 { place = 4 + Int(start[4]) << 8 + Int(start[5]) }
    guard start.count >= place else { return count }
    hasHead = true
    let whole = Array(start[..<place]) + head.bytes + Array(start[place...])
    start = []
    return whole.withUnsafeBytes(put) ? count : -1
  }

  private func put(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = write(descriptor, rest.baseAddress, rest.count)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { return false }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
    return true
  }
}
