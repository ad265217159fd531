import BlobMedia
import Blobs
import Testing

struct PhotoPreviewTests {
  /// A TIFF block with two directories; the second one has the preview.
  private func tiff(little: Bool, orientation: Int, _ preview: [UInt8], length: Int? = nil, next: Int = 26) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      let bytes = (0..<count).map { UInt8(value >> ($0 * 8) & 0xFF) }
      return little ? bytes : bytes.reversed()
    }
    var bytes = Array((little ? "II" : "MM").utf8) + number(42, 2) + number(8, 4)
    bytes += number(1, 2) + number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + [0, 0]
    bytes += number(next, 4)
    bytes += number(2, 2) + number(0x0201, 2) + number(4, 2) + number(1, 4) + number(56, 4)
    bytes += number(0x0202, 2) + number(4, 2) + number(1, 4) + number(length ?? preview.count, 4) + number(0, 4)
    return bytes + preview
  }

  private func photo(_ exif: [UInt8]) -> [UInt8] {
    let content = Array("Exif\0\0".utf8) + exif
    let length = content.count + 2
    return [0xFF, 0xD8, 0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 0xFF)] + content + [
      0xFF, 0xDA, 0, 3, 1, 7, 0xFF, 0xD9,
    ]
  }

  private let small: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0, 3, 9, 0xFF, 0xD9]

  @Test(arguments: [true, false]) func aPhotoHasThePreviewOfItsCamera(_ little: Bool) {
    #expect(PhotoPreview.jpeg(inStart: photo(tiff(little: little, orientation: 1, small))) == small)
    #expect(PhotoPreview.jpeg(inStart: tiff(little: little, orientation: 1, small)) == small)
  }

  @Test func thePreviewIsTurnedLikeThePhoto() throws {
    for number in 2...8 {
      let preview = try #require(PhotoPreview.jpeg(inStart: photo(tiff(little: true, orientation: number, small))))
      #expect(PhotoOrientation.read(from: DataSource(preview)).number == number)
      #expect(preview.suffix(small.count - 2) == small.suffix(small.count - 2) && preview.count == small.count + 36)
    }
  }

  @Test func anIncompleteJPEGIsNoPreview() {
    for bytes in [
      tiff(little: true, orientation: 1, Array("<script>".utf8)),
      tiff(little: true, orientation: 1, small, length: 100),
      tiff(little: true, orientation: 1, small, length: 1 << 31), tiff(little: true, orientation: 1, small, length: 0),
      tiff(little: true, orientation: 1, small, next: 0), tiff(little: true, orientation: 1, small, next: 8),
      tiff(little: true, orientation: 1, small, next: 1 << 31), [], [0xFF, 0xD8],
    ] { #expect(PhotoPreview.jpeg(inStart: photo(bytes)) == nil) }
  }

  /// A photo that is cut anywhere, or has any byte changed, causes no crash.
  @Test func noOffsetIsTrusted() {
    let bytes = photo(tiff(little: false, orientation: 6, small))
    for end in bytes.indices { _ = PhotoPreview.jpeg(inStart: Array(bytes[..<end])) }
    for index in bytes.indices {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var changed = bytes
        changed[index] = value
        let found = PhotoPreview.jpeg(inStart: changed)
        #expect(found == nil || found!.starts(with: [0xFF, 0xD8]) && found!.count <= PhotoPreview.mostBytes)
      }
    }
  }
}
