import BlobMedia
import Blobs
import Testing

@Suite struct LayoutTests {
  private let date = CaptureDate(2024, 1, 2, 3, 4, 5)

  @Test(
    arguments: [
      ("{year}/{month}/{name}", "2024/01/IMG_1.HEIC"), ("{name}", "IMG_1.HEIC"),
      ("all/{folder}/{name}", "all/DCIM/100/IMG_1.HEIC"),
      ("{year}-{month}-{day} {hour}.{minute}.{second} {stem}.{ext}", "2024-01-02 03.04.05 IMG_1.HEIC"),
    ] as [(BytePath, BytePath)])
  func fieldsAreFilledIn(_ template: BytePath, _ path: BytePath) throws {
    var problem = ""
    let layout = try #require(Layout(template, problem: &problem), "\(problem)")
    #expect(layout.path(of: "DCIM/100/IMG_1.HEIC", taken: date) == path)
  }

  @Test(
    arguments: [("noext", "a/noext"), ("a.b", "a/a.b"), ("a.", "a/a."), (".hidden", "a/.hidden")]
      as [(BytePath, BytePath)])
  func aNameWithoutAnEndingGetsNoDot(_ name: BytePath, _ path: BytePath) throws {
    var problem = ""
    let layout = try #require(Layout("a/{stem}.{ext}", problem: &problem))
    #expect(layout.path(of: name, taken: date) == path)
  }

  @Test func whatIsEmptyLeavesNoSlash() throws {
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
      ("", "below the destination"), ("{year}/{month}", "one name"),
    ] as [(BytePath, String)])
  func whatIsNoLayoutIsRefused(_ template: BytePath, _ words: String) {
    var problem = ""
    #expect(Layout(template, problem: &problem) == nil)
    #expect(problem.contains(words), "\(problem)")
  }
}
