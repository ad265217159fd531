import BlobMedia
import BlobTesting
import Blobs
import Testing

/// The dates in files of each format of cameras and editors.
@Suite struct PictureFormatTests {
  private static let taken = CaptureDate(2024, 1, 2, 3, 4, 5)

  private func date(_ bytes: [UInt8]) -> CaptureDate? { CaptureDate.read(from: DataSource(bytes)) }

  @Test(arguments: PictureBytes.all.map(\.name)) func theCaptureDateIsReadFromEveryFormat(_ name: String) throws {
    let picture = try #require(PictureBytes.all.first { $0.name == name })
    #expect(date(picture.bytes) == Self.taken)
  }

  @Test func theExifOfARawFileMayLieFarBehindItsPixels() {
    #expect(date(PictureBytes.tiff(exifAt: 5_000_000)) == Self.taken)
  }

  @Test func theExifOfAJPEGMayLieBehindOtherSegments() { #expect(date(PictureBytes.jpeg(before: 5)) == Self.taken) }

  @Test func aCR3WithoutExifHasTheDateOfItsHead() {
    #expect(date(PictureBytes.cr3(withExif: false)) == CaptureDate(secondsSince1970: 1_000_000_000))
  }

  @Test func theCaptureDateIsReadBehindManyPiecesOfAPNG() { #expect(date(PictureBytes.png(parts: 700)) == Self.taken) }

  @Test(arguments: ["Tue Jon  2 03:04:05 2024", "2024/13/01 00:00:00", "now", "", "Tue Jan 2 2024 3"])
  func anInvalidDateOfAFilmIsNoCaptureDate(_ text: String) { #expect(date(PictureBytes.avi(text)) == nil) }

  @Test func aFilmOfTheAfternoonMayCountToTwelve() {
    #expect(date(PictureBytes.avi("2001/ 1/27  1:42PM\0")) == CaptureDate(2001, 1, 27, 13, 42))
    #expect(date(PictureBytes.avi("2001/ 1/27 12:42AM\0")) == CaptureDate(2001, 1, 27, 0, 42))
    #expect(date(PictureBytes.avi("2024-01-02", in: "ICRD")) == CaptureDate(2024, 1, 2))
  }

  /// A file that is truncated anywhere, or has one of its first or last bytes changed, causes no crash.
  @Test(arguments: PictureBytes.all.map(\.name)) func noFormatTrustsWhatItReads(_ name: String) throws {
    let whole = try #require(PictureBytes.all.first { $0.name == name }).bytes
    let places = whole.count < 1200 ? Array(whole.indices) : Array(0..<600) + Array((whole.count - 600)..<whole.count)
    for count in places { _ = date(Array(whole.prefix(count))) }
    for place in places {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var bytes = whole
        bytes[place] = value
        _ = date(bytes)
      }
    }
  }
}
