import Blobs
import Platform
import Testing

@testable import fullbore

/// A file has another name while it is looked at for the last time before it is deleted.
@Suite struct SetAsideFileTests {
  private let scratch = Scratch()

  private func setAside(_ name: BytePath) throws -> SetAsideFile {
    try SetAsideFile(scratch.path.appending(name)) { _ in true }
  }

  private func exists(_ path: BytePath) -> Bool { path.withCString { access($0, F_OK) } == 0 }

  /// Another program makes a file of its name.
  @Test func newFileOfTheNameStays() throws {
    let path = scratch.file("a.jpg", [1, 2, 3])
    let file = try setAside("a.jpg")
    scratch.file("a.jpg", [4, 5])
    try file.checkUnchanged()
    try file.remove()
    #expect(scratch.content(of: "a.jpg") == [4, 5])
    #expect(exists(path) && !exists(file.away))
  }

  @Test func neitherOfTwoFilesIsLostWhenTheNameIsTaken() throws {
    scratch.file("a.jpg", [1, 2, 3])
    let file = try setAside("a.jpg")
    scratch.file("a.jpg", [4, 5])
    let error = #expect(throws: SetAsideFile.Failure.self) { try file.giveBack() }
    #expect(error?.reason.contains("a.jpg is now named a.jpg.fullbore-") == true, "\(error as Any)")
    #expect(scratch.content(of: "a.jpg") == [4, 5])
    #expect(scratch.content(of: file.away.name) == [1, 2, 3])
  }

  /// A program had opened the file before it was renamed.
  @Test func changedFileGetsItsNameBack() throws {
    let path = scratch.file("a.jpg", [1, 2, 3])
    let file = try setAside("a.jpg")
    scratch.file(file.away.name, [1, 2, 3, 4])
    let error = #expect(throws: SetAsideFile.Failure.self) { try file.checkUnchanged() }
    #expect(error?.reason == "a.jpg has changed since it was proved")
    #expect([file].givenBack("a.jpg has changed since it was proved") == "a.jpg has changed since it was proved")
    #expect(scratch.content(of: "a.jpg") == [1, 2, 3, 4] && exists(path) && !exists(file.away))
  }

  @Test func unprovedVersionKeepsItsName() throws {
    let path = scratch.file("a.jpg")
    #expect(throws: SetAsideFile.Failure.self) { try SetAsideFile(path) { _ in false } }
    #expect(exists(path))
  }

  @Test func nameTellsTheOriginalOne() {
    for name in ["IMG_1.JPG", "a", "a.fullbore-7", "\u{E9}.mov"] as [BytePath] {
      #expect(SetAsideName.original(of: SetAsideName.of(name)) == name)
      #expect(SetAsideName.original(of: name) == nil)
      #expect(SetAsideName.original(of: BytePath(SetAsideName.of(name).bytes + [UInt8(ascii: "1")])) == nil)
    }
    #expect(SetAsideName.original(of: ".fullbore-1") == nil)
  }
}
