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
    let error = #expect(throws: SetAsideFile.Failure.self) { try file.giveBack(isProved: false) }
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

  /// Tag editors write in place and set the modification time back.
  @Test func changeIsSeenThoughTheTimeIsSetBack() throws {
    let path = scratch.file("a.jpg", [1, 2, 3])
    let file = try setAside("a.jpg")
    // The kernel's clock of file times has ticks of up to 10 ms.
    usleep(20_000)
    scratch.file(file.away.name, [3, 2, 1])
    let time = timespec(
      tv_sec: Int(file.stamp.modified / 1_000_000_000), tv_nsec: Int(file.stamp.modified % 1_000_000_000))
    #expect(file.away.withCString { utimensat(AT_FDCWD, $0, [time, time], 0) } == 0)
    #expect(throws: SetAsideFile.Failure.self) { try file.checkUnchanged() }
    #expect(throws: SetAsideFile.Failure.self) { try file.giveBack(isProved: false) }
    #expect(scratch.content(of: "a.jpg") == [3, 2, 1] && exists(path) && !exists(file.away))
  }

  @Test func unprovedVersionKeepsItsName() throws {
    let path = scratch.file("a.jpg")
    #expect(throws: SetAsideFile.Failure.self) { try SetAsideFile(path) { _ in false } }
    #expect(exists(path))
  }

  /// Without an atomic rename, the file is linked to its new name, and the process was killed before it removed the old one.
  @Test(arguments: [false, true]) func fileWithBothNamesGetsOne(_ isDeleted: Bool) throws {
    let path = scratch.file("a.jpg", [1, 2, 3])
    let away = path.folder.appending(SetAsideName.of("a.jpg"))
    let status = path.withCString { path in away.withCString { link(path, $0) } }
    #expect(status == 0)
    if isDeleted {
      let file = try setAside("a.jpg")
      #expect(!exists(path) && exists(away))
      try file.checkUnchanged()
      try file.remove()
      #expect(!exists(path) && !exists(away))
    } else {
      let found = SetAsideName.Found(away.name, in: path.folder, .giveBack)
      #expect(found?.original == "a.jpg")
      #expect(scratch.content(of: "a.jpg") == [1, 2, 3] && !exists(away))
    }
  }

  /// The file keeps a name that is too long for the addition, in a folder of its own.
  @Test(arguments: [235, 236, 255]) func everyNameIsSetAside(_ length: Int) throws {
    let name = BytePath(String(repeating: "x", count: length))
    let path = scratch.file(name, [1])
    let file = try setAside(name)
    #expect(!exists(path) && exists(file.away))
    #expect(SetAsideName.original(of: file.awayName) == name)
    try file.checkUnchanged()
    #expect(try file.giveBack(isProved: true) != nil)
    #expect(exists(path) && !exists(path.folder.appending(SetAsideName.folder)))
    try setAside(name).remove()
    #expect(!exists(path) && !exists(path.folder.appending(SetAsideName.folder)))
  }

  /// A newer version would have replaced the one that has another name.
  @Test(arguments: [true, false]) func aProvedVersionGivesWayToANewOne(_ isChanged: Bool) throws {
    scratch.file("a.jpg", [1, 2, 3])
    let file = try setAside("a.jpg")
    scratch.file("a.jpg", [4, 5])
    if isChanged {
      scratch.file(file.awayName, [1, 2, 3, 4])
      #expect(throws: SetAsideFile.Failure.self) { try file.giveBack(isProved: true) }
    } else {
      #expect(try file.giveBack(isProved: true) == nil)
    }
    #expect(scratch.content(of: "a.jpg") == [4, 5])
    #expect(exists(file.away) == isChanged)
  }

  @Test func theOriginalNameIsFoundFromASetAsideName() {
    for name in ["IMG_1.JPG", "a", "a.fullbore-7", "\u{E9}.mov"] as [BytePath] {
      #expect(SetAsideName.original(of: SetAsideName.of(name)) == name)
      #expect(SetAsideName.original(of: name) == nil)
      #expect(SetAsideName.original(of: BytePath(SetAsideName.of(name).bytes + [UInt8(ascii: "1")])) == nil)
    }
    #expect(SetAsideName.original(of: ".fullbore-1") == nil)
  }
}
