import Foundation
import Testing

extension EndToEnd {
  /// `fullbore push` of camera rolls: which versions of a photo are sent, and their destinations.
  @Suite(.serialized) struct GalleryTests {
    let scratch = try! Scratch()

    /// Creates files whose times are in November 2023, and one photo whose metadata says May 2019.
    private func makeRoll() throws {
      for name in ["IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC", "IMG_0001.AAE", "IMG_0002.CR2", "IMG_0002.JPG"] {
        try scratch.file("card/DCIM/100APPLE/\(name)", 10_000 + name.utf8.count)
      }
      try scratch.file("card/DCIM/101APPLE/IMG_0003.MOV", 30_000)
      let taken = Array("2019:05:06 07:08:09\0".utf8)
      let tiff: [UInt8] =
        [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x32, 1, 2, 0, 20, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0] + taken
      let exif = Array("Exif\0\0".utf8) + tiff
      let photo = [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif + [UInt8](repeating: 0, count: 5000)
      try Data(photo).write(to: URL(fileURLWithPath: scratch.path("card/DCIM/101APPLE/IMG_0003.JPG")))
      try scratch.age("card/DCIM/101APPLE/IMG_0003.JPG")
    }

    private func push(_ options: String...) async throws -> (names: [String], output: String) {
      try makeRoll()
      let server = try await ServeProcess.start(in: scratch)
      let words = ["push", "--verbose"] + options + [scratch.path("card/DCIM/"), server.url]
      let push = try Command(Tool.fullbore, words, in: scratch)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      return (server.folder.files().keys.sorted(), push.output)
    }

    /// All files are sent unless the user says otherwise.
    @Test func originalsAndEditsBothGo() async throws {
      let (names, output) = try await push()
      #expect(
        names == [
          "100APPLE/IMG_0001.AAE", "100APPLE/IMG_0001.HEIC", "100APPLE/IMG_0001.MOV", "100APPLE/IMG_0002.CR2",
          "100APPLE/IMG_0002.JPG", "100APPLE/IMG_E0001.HEIC", "101APPLE/IMG_0003.JPG", "101APPLE/IMG_0003.MOV",
        ])
      #expect(!output.contains("left out"), "\(output)")
    }

    @Test func editsGoInPlaceOfWhatTheyWereMadeOfWhenAskedFor() async throws {
      let (names, output) = try await push("--edits", "current")
      #expect(
        names == [
          "100APPLE/IMG_0001.MOV", "100APPLE/IMG_0002.CR2", "100APPLE/IMG_0002.JPG", "100APPLE/IMG_E0001.HEIC",
          "101APPLE/IMG_0003.JPG", "101APPLE/IMG_0003.MOV",
        ])
      #expect(output.contains("IMG_0001.HEIC  left out: its edit IMG_E0001.HEIC is sent"), "\(output)")
      #expect(output.contains("2 left out"), "\(output)")
    }

    @Test func originalsOrBothGoWhenAskedFor() async throws {
      let originals = try await push("--edits", "original")
      #expect(originals.names.filter { $0.contains("0001") } == ["100APPLE/IMG_0001.HEIC", "100APPLE/IMG_0001.MOV"])
      let (end, both) = try await fullbore(
        "push", "--edits", "both", "--dry-run", scratch.path("card/DCIM/"), "http://127.0.0.1:1/", in: scratch)
      #expect(end == .exited(0) && both.output.contains("8 files"), "\(both.output)")
    }

    /// A picture without a date gets the date of its film, and both arrive together.
    @Test func aLivePhotoWithoutADateHasThatOfItsFilm() async throws {
      let name = "card/DCIM/100APPLE/IMG_0009"
      try scratch.file(name + ".HEIC", 10_000)
      // Seconds since 1904: 9 September 2001.
      let seconds = UInt32(1_000_000_000 + 2_082_844_800)
      let time = (0..<4).map { UInt8(truncatingIfNeeded: seconds >> (24 - $0 * 8)) }
      let head = [0, 0, 0, 28] + Array("mvhd".utf8) + [0, 0, 0, 0] + time + [UInt8](repeating: 0, count: 12)
      let film = [0, 0, 0, 12] + Array("ftypqt  ".utf8) + [0, 0, 0, 36] + Array("moov".utf8) + head
      try Data(film).write(to: URL(fileURLWithPath: scratch.path(name + ".MOV")))
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--layout", "{year}/{month}/{name}", scratch.path("card/DCIM/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["2001/09/IMG_0009.HEIC", "2001/09/IMG_0009.MOV"])
    }

    /// A film gets the folder of its photo.
    @Test func theLayoutIsMadeOfWhenTheyWereTaken() async throws {
      let (names, _) = try await push("--edits", "current", "--layout", "{year}/{month}/{name}")
      #expect(
        names == [
          "2019/05/IMG_0003.JPG", "2019/05/IMG_0003.MOV", "2023/11/IMG_0001.MOV", "2023/11/IMG_0002.CR2",
          "2023/11/IMG_0002.JPG", "2023/11/IMG_E0001.HEIC",
        ])
    }

    /// In other folders the same names may have another meaning.
    @Test func aFolderThatIsNoCameraRollIsSentUnchanged() async throws {
      for name in ["IMG_0001.HEIC", "IMG_E0001.HEIC", "IMG_0001.AAE"] { try scratch.file("gallery/\(name)", 1000) }
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", scratch.path("gallery/"), server.url, in: scratch).end == .exited(0))
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }

    @Test func aWatchLaysThemOutToo() async throws {
      try makeRoll()
      try FileManager.default.createDirectory(atPath: scratch.path("gallery"), withIntermediateDirectories: true)
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(
        to: server.url, in: scratch, "--layout", "{year}/{month}/{name}", "--edits", "current")
      #expect(rename(scratch.path("card/DCIM"), scratch.path("gallery/DCIM")) == 0)
      try await watch.until("all is there") { server.folder.files().count == 6 ? true : nil }
      #expect(server.folder.files()["2019/05/IMG_0003.MOV"] == 30_000)
      #expect(server.folder.files()["2023/11/IMG_0001.HEIC"] == nil)
      #expect(try await watch.stop() == .exited(130))
    }
  }
}
