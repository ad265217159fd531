import Blobs
import Platform
import Testing

@testable import fullbore

/// Tests files that are renamed after the walk has found them and before the upload opens them.
@Suite struct RenameTrackerTests {
  private let scratch = Scratch()
  private var roots: [BytePath] { [scratch.path] }

  private func items() -> [TreeItem] {
    let tree = FileTree(roots)
    var items: [TreeItem] = []
    while case let events = tree.next(max: 100), !events.isEmpty {
      items += events.compactMap { if case .file(let item) = $0 { item } else { nil } }
    }
    return items
  }

  private func move(_ old: BytePath, to new: BytePath) {
    scratch.folder(BytePath(new.components.dropLast().map { $0.bytes }.joined(separator: [UInt8(ascii: "/")])))
    let (old, new) = (scratch.path.appending(old), scratch.path.appending(new))
    #expect(old.withCString { old in new.withCString { rename(old, $0) } } == 0)
  }

  @Test func aRenamedFileThatIsFoundAgainIsSkipped() throws {
    for name in ["a/1.jpg", "a/2.jpg", "a/3.jpg"] as [BytePath] { scratch.file(name, Array(name.bytes)) }
    let promised = RenameTracker(roots, TreeOptions())
    for item in items() { #expect(promised.take(item)) }
    // The first file is moved, the second is replaced by another under the same name, the third stays.
    move("a/1.jpg", to: "z/one.jpg")
    scratch.file("new.jpg", [9])
    move("new.jpg", to: "a/2.jpg")
    let taken = items().filter { promised.take($0) }.map(\.relative.name)
    #expect(taken == ["2.jpg", "3.jpg"])
  }

  @Test func otherNamesOfAFileAreFilesOfTheirOwn() throws {
    scratch.file("a.jpg")
    let (old, new) = (scratch.path.appending("a.jpg"), scratch.path.appending("b.jpg"))
    #expect(old.withCString { old in new.withCString { link(old, $0) } } == 0)
    scratch.link("c.jpg", to: "a.jpg")
    let promised = RenameTracker(roots, TreeOptions())
    #expect(items().filter { promised.take($0) }.count == 3)
    // The walk finds the same files a second time.
    #expect(items().filter { promised.take($0) }.count == 3)
  }

  @Test func aMovedFileIsFoundInAnyFolder() throws {
    for number in 0..<20 { scratch.file(BytePath("a/\(number).jpg"), [UInt8(number)]) }
    let promised = RenameTracker(roots, TreeOptions())
    let items = items().filter { promised.take($0) }
    func place(_ item: TreeItem) throws -> BytePath? { try promised.place(of: item.stamp, Cancellation()) }
    for item in items {
      let name = item.relative.name
      move(BytePath("a").appending(name), to: BytePath("b/c").appending(BytePath(name.bytes + [UInt8(ascii: "x")])))
    }
    for item in items {
      #expect(try place(item) == scratch.path.appending("b/c").appending(BytePath(item.path.name.bytes + [0x78])))
    }
    // The files are moved a second time, one of them back to its first folder.
    move("b/c/1.jpgx", to: "again.jpg")
    move("b/c/2.jpgx", to: "a/2.jpg")
    for (name, there) in [("1.jpg", "again.jpg"), ("2.jpg", "a/2.jpg")] as [(BytePath, BytePath)] {
      #expect(try place(items.first { $0.path.name == name }!) == scratch.path.appending(there))
    }
    let gone = scratch.path.appending("b/c/3.jpgx")
    #expect(gone.withCString { unlink($0) } == 0)
    #expect(try place(items.first { $0.path.name == "3.jpg" }!) == nil)
    // This file was never promised.
    let stranger = FileStamp(device: 1, inode: 1, size: 1, modified: 1, changed: 1)
    #expect(try promised.place(of: stranger, Cancellation()) == nil)
  }

  @Test func onlyTheLatestAreRemembered() throws {
    let promised = RenameTracker([], TreeOptions())
    let volume = FileVolume(keepsNumbers: true)
    func item(_ number: UInt64, _ name: BytePath) -> TreeItem {
      var stamp = FileStamp(device: 1, inode: number, size: 1, modified: 1, changed: 1)
      stamp.volume = volume
      return TreeItem(path: name, relative: name, stamp: stamp, isOnlyName: true)
    }
    for number in 0..<10_000 { #expect(promised.take(item(UInt64(number), BytePath("/nowhere/\(number)")))) }
    #expect(!promised.take(item(9_999, "/elsewhere/9999")))
    #expect(promised.take(item(0, "/elsewhere/0")), "forgotten, so that memory stays")
  }
}
