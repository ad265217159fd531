import Blobs
import Testing

@testable import fullbore

@Suite struct UnfinishedNameTests {
  @Test(arguments: [
    "film.mov.part", "film.mov.PART", "film.crdownload", "a.tmp", "a.partial", "a.filepart", "notes.txt~", "~$a.docx",
    ".film.mov.Xy3z9A", "a.download",
  ]) func isThatOfAFileInTheMaking(name: String) { #expect(UnfinishedName.matches(BytePath(name))) }

  @Test(arguments: [
    "film.mov", "part", ".part", "~", "tmp", "party.jpg", "a.tmp.jpg", ".hidden", ".gitignore", ".film.mov.Xy3-9A",
    "IMG.Xy3z9A", ".x.Xy3z9",
  ]) func isThatOfAnyOtherFile(name: String) { #expect(!UnfinishedName.matches(BytePath(name))) }
}
