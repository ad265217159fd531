import BlobMedia
import Blobs
import Testing

@Suite struct LayoutTests {
  private let date = CaptureDate(2024, 1, 2, 3, 4, 5)

  @Test(
    arguments: [
      ("{year}/{month}/{name}", "2024/01/IMG_1.HEIC"), ("{name}", "IMG_1.HEIC"),
      ("all/{folder}/{name}", "all/DCIM/100/IMG_1.HEIC"), ("{camera}/{name}", "X-T5/IMG_1.HEIC"),
      ("{year}/{stem}_{counter}.{ext}", "2024/IMG_1_1.HEIC"), ("{counter}/{name}", "1/IMG_1.HEIC"),
      ("{year}-{month}-{day} {hour}.{minute}.{second} {stem}.{ext}", "2024-01-02 03.04.05 IMG_1.HEIC"),
    ] as [(BytePath, BytePath)])
  func fieldsAreFilledIn(_ template: BytePath, _ path: BytePath) throws {
    var problem = ""
    let layout = try #require(Layout(template, problem: &problem), "\(problem)")
    #expect(layout.path(of: "DCIM/100/IMG_1.HEIC", taken: date, camera: CameraName("X-T5")) == path)
  }

  @Test(
    arguments: [("noext", "a/noext"), ("a.b", "a/a.b"), ("a.", "a/a."), (".hidden", "a/.hidden")]
      as [(BytePath, BytePath)])
  func aNameWithoutAnEndingGetsNoDot(_ name: BytePath, _ path: BytePath) throws {
    var problem = ""
    let layout = try #require(Layout("a/{stem}.{ext}", problem: &problem))
    #expect(layout.path(of: name, taken: date) == path)
  }

  /// Programs find a sidecar by the whole name of its picture.
  @Test(
    arguments: [
      ("IMG_1.JPG", "IMG_1_1.JPG"), ("IMG_1.JPG.xmp", "IMG_1_1.JPG.xmp"), ("IMG_1.xmp", "IMG_1_1.xmp"),
      ("a.b.xmp", "a.b_1.xmp"), (".hidden", ".hidden_1"),
    ] as [(BytePath, BytePath)])
  func aCounterIsPartOfThePicturesNameInThatOfItsSidecar(_ name: BytePath, _ path: BytePath) throws {
    var problem = ""
    let layout = try #require(Layout("{stem}_{counter}.{ext}", problem: &problem))
    #expect(layout.path(of: name, taken: date) == path)
  }

  @Test func aCameraThatIsNotKnownIsNamedSo() throws {
    var problem = ""
    let layout = try #require(Layout("{camera}/{name}", problem: &problem))
    #expect(layout.path(of: "IMG_1", taken: date) == "unknown/IMG_1")
  }

  /// What a picture says of its camera must not lead to another folder.
  @Test(arguments: [
    ("NIKON Z 9", "NIKON Z 9"), ("../../etc", "etc"), ("a/b\\c", "a-b-c"), ("  Canon EOS R5 \u{0}", "Canon EOS R5"),
    ("X\nY", "X-Y"), ("iPhone 15 Pro", "iPhone 15 Pro"), ("ＳＯＮＹ", "ＳＯＮＹ"), ("a\u{202E}b", "a-b"),
  ])
  func aCamerasNameIsMadeAPartOfAPath(_ text: String, _ name: String) { #expect(CameraName(text)?.text == name) }

  @Test(arguments: ["", ".", "..", "/", " ", "- ."]) func aCameraWithoutANameIsUnknown(_ text: String) {
    #expect(CameraName(text) == nil)
  }

  @Test func theCameraIsReadFromThePicture() {
    func entry(_ tag: Int, _ count: Int, _ value: Int) -> [UInt8] {
      PictureBytes.little(tag, 2) + PictureBytes.little(2, 2) + PictureBytes.little(count, 4)
        + PictureBytes.little(value, 4)
    }
    let head = Array("II*\0".utf8) + PictureBytes.little(8, 4) + PictureBytes.little(2, 2)
    let tiff =
      head + entry(0x010F, 6, 38) + entry(0x0110, 8, 44) + PictureBytes.little(0, 4) + Array("NIKON\0NIKON D7\0".utf8)
    #expect(CameraName.read(from: DataSource(tiff))?.text == "NIKON D7")
    // Every beginning of the file is read, or has no camera.
    for count in tiff.indices { _ = CameraName.read(from: DataSource(Array(tiff[..<count]))) }
  }

  @Test func emptyFieldsOfALayoutLeaveNoSlash() throws {
    var problem = ""
    let layout = try #require(Layout("{folder}/{stem}/{ext}", problem: &problem))
    #expect(layout.path(of: "IMG_1", taken: date) == "IMG_1")
    #expect(layout.path(of: ".hidden", taken: date) == ".hidden")
  }

  @Test func namesThatAreNoTextStayAsTheyAre() throws {
    var problem = ""
    let layout = try #require(Layout("{year}/{name}", problem: &problem))
    let odd = BytePath([0x66, 0xFF, 0x2E, 0xFE])
    #expect(layout.path(of: odd, taken: date) == BytePath("2024/").appending(odd))
  }

  @Test(
    arguments: [
      ("{yaer}/{name}", "{yaer} is not known"), ("{year/{name}", "is not known"), ("{name", "a brace"),
      ("name}", "a brace"),
      ("/{name}", "below the destination"), ("../{name}", "below the destination"),
      ("./{name}", "below the destination"), ("x/./{name}", "below the destination"),
      ("{name}/", "below the destination"),
      ("", "below the destination"), ("{year}/{month}", "one name"), ("{counter}", "one name"),
      ("{counter}{name}{counter}", "once"),
    ] as [(BytePath, String)])
  func anInvalidLayoutIsRefusedWithAReason(_ template: BytePath, _ words: String) {
    var problem = ""
    #expect(Layout(template, problem: &problem) == nil)
    #expect(problem.contains(words), "\(problem)")
  }
}
