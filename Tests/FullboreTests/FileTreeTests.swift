import Blobs
import Foundation
import Platform
import Synchronization
import Testing

@testable import fullbore

@Suite struct FileTreeTests {
  let scratch = Scratch()

  func walk(_ roots: [BytePath], _ options: TreeOptions = TreeOptions(), batch: Int = 3) -> [TreeEvent] {
    let tree = FileTree(roots, options)
    var all: [TreeEvent] = []
    while case let events = tree.next(max: batch), !events.isEmpty { all += events }
    return all
  }

  func files(_ events: [TreeEvent]) -> [BytePath] {
    events.compactMap { if case .file(let item) = $0 { item.relative } else { nil } }
  }

  func arrivals(_ roots: BytePath..., options: TreeOptions = TreeOptions()) -> [BytePath] {
    files(walk(roots, options))
  }

  @Test func aFolderArrivesUnderItsNameAndWithASlashItsContentsDo() {
    scratch.file("dir/b.jpg")
    scratch.file("dir/a.jpg")
    scratch.file("dir/sub/c.jpg")
    let dir = scratch.path.appending("dir")
    #expect(arrivals(dir) == ["dir/a.jpg", "dir/b.jpg", "dir/sub/c.jpg"])
    #expect(arrivals(BytePath(dir.bytes + [UInt8(ascii: "/")])) == ["a.jpg", "b.jpg", "sub/c.jpg"])
    #expect(arrivals(dir.appending(".")) == ["a.jpg", "b.jpg", "sub/c.jpg"])
    #expect(arrivals(dir.appending("sub/..")) == ["a.jpg", "b.jpg", "sub/c.jpg"])
    #expect(arrivals(dir.appending("sub/c.jpg")) == ["c.jpg"])
  }

  @Test func anItemHasPathAndStamp() throws {
    let path = scratch.file("dir/a.jpg", [1, 2, 3, 4])
    let events = walk([scratch.path.appending("dir")])
    guard case .file(let item) = try #require(events.first) else { return #expect(Bool(false), "\(events)") }
    #expect(item.path == path)
    #expect(item.stamp.size == 4)
    #expect(try FileSource(path).info(Cancellation()).validator == item.stamp.validator)
  }

  /// A folder of more names than are sorted otherwise, and files that are given one by one.
  @Test func thePictureComesFirstAndTheOtherFilesOfItsPhotoFollow() {
    var options = TreeOptions()
    options.mostPhotos = PhotoGroups.most
    let count = FileTree.sortedLimit / 3 + 1
    for number in 0..<count {
      for name in ["IMG_\(number).ARW", "IMG_\(number).JPG", "IMG_E\(number).JPG"] {
        scratch.file(BytePath("dir/\(name)"), [])
      }
    }
    let dir = scratch.path.appending("dir")
    let names = arrivals(dir.appending("."), options: options).map(\.description)
    #expect(names.count == 3 * count)
    var wrong: [String] = []
    for start in stride(from: 0, to: names.count, by: 3) {
      let stem = names[start].dropLast(4)
      let wanted = ["\(stem).JPG", "\(stem).ARW", "IMG_E\(stem.dropFirst(4)).JPG"]
      if Array(names[start..<start + 3]) != wanted { wrong += names[start..<start + 3] }
    }
    #expect(wrong.isEmpty, "\(wrong.prefix(9))")
    let given = ["IMG_1.ARW", "IMG_2.ARW", "IMG_2.JPG", "IMG_1.JPG"].map { dir.appending($0) }
    #expect(files(walk(given, options)) == ["IMG_1.JPG", "IMG_1.ARW", "IMG_2.JPG", "IMG_2.ARW"])
    #expect(files(walk(given)) == ["IMG_1.ARW", "IMG_2.ARW", "IMG_2.JPG", "IMG_1.JPG"])
  }

  @Test func namesThatAreNoTextAndEmptyFilesArrive() {
    let odd = BytePath([0x66, 0xFF, 0xFE])
    scratch.file(BytePath("dir/").appending(odd), [])
    scratch.file("dir/new\nline")
    #expect(Set(arrivals(scratch.path.appending("dir"))) == [BytePath("dir").appending(odd), "dir/new\nline"])
  }

  @Test func hiddenNamesAreLeftOutUnlessAskedForOrGiven() {
    scratch.file("dir/.hidden/a.jpg")
    scratch.file("dir/.b.jpg")
    scratch.file("dir/c.jpg")
    let dir = scratch.path.appending("dir")
    #expect(arrivals(dir) == ["dir/c.jpg"])
    let all = arrivals(dir, options: TreeOptions(includesHidden: true))
    #expect(Set(all) == ["dir/.b.jpg", "dir/.hidden/a.jpg", "dir/c.jpg"])
    #expect(arrivals(dir.appending(".b.jpg")) == [".b.jpg"])
  }

  @Test func linksToFilesAreFollowedAndLinksToFoldersAreNot() {
    scratch.file("dir/a.jpg")
    scratch.link("dir/b.jpg", to: "a.jpg")
    scratch.link("dir/loop", to: ".")
    scratch.link("dir/nowhere", to: "gone")
    scratch.link("dir/self", to: "self")
    let events = walk([scratch.path.appending("dir")])
    #expect(files(events) == ["dir/a.jpg", "dir/b.jpg"])
    let others = events.compactMap { event -> String? in
      switch event {
      case .file: nil
      case .skipped(let path, let reason): "\(path.name): \(reason)"
      case .failed(let path, let message): "\(path.name): \(message)"
      case .noticed(let text): text
      }
    }
    #expect(others.count == 3)
    #expect(others[0] == "loop: a symbolic link to a folder")
    #expect(others[1].hasPrefix("nowhere: a symbolic link that leads nowhere"))
    #expect(others[2].hasPrefix("self: a symbolic link that leads nowhere"))
  }

  @Test func aLinkToAFolderThatIsGivenIsFollowed() {
    scratch.file("dir/a.jpg")
    scratch.link("link", to: "dir")
    #expect(arrivals(scratch.path.appending("link")) == ["link/a.jpg"])
  }

  @Test func pathsThatAreNoFilesAreSkippedWithAReason() {
    scratch.folder("dir")
    let pipe = scratch.path.appending("dir/pipe")
    #expect(pipe.withCString { mkfifo($0, 0o644) } == 0)
    #expect(makeSocket(scratch.path.appending("dir/socket")))
    let events = walk([scratch.path.appending("dir")])
    let skipped = events.compactMap { event -> String? in
      if case .skipped(let path, let reason) = event { "\(path.name): \(reason)" } else { nil }
    }
    #expect(skipped == ["pipe: a pipe", "socket: a socket"])
    #expect(events.count == 2)
  }

  @Test func aNamedPathThatIsNoFileFails() {
    let pipe = scratch.path.appending("pipe")
    #expect(pipe.withCString { mkfifo($0, 0o644) } == 0)
    let failed = walk([pipe, "/dev/null"]).compactMap { event -> String? in
      if case .failed(let path, let message) = event { "\(path.name): \(message.prefix(11))" } else { nil }
    }
    #expect(failed == ["pipe: it is a pip", "null: it is a dev"])
  }

  @Test func anUnreadablePathFailsAndTheOthersAreFound() {
    scratch.file("a.jpg")
    let events = walk([scratch.path.appending("gone"), "", scratch.path.appending("a.jpg")])
    #expect(files(events) == ["a.jpg"])
    guard case .failed(let path, let message) = events[0] else { return #expect(Bool(false), "\(events)") }
    #expect(path == scratch.path.appending("gone"))
    #expect(message == "No such file or directory")
  }

  @Test func globsChooseFilesAndPruneFolders() {
    for name in ["dir/a.jpg", "dir/b.MOV", "dir/thumbs/c.jpg", "dir/2024/d.jpg"] as [BytePath] { scratch.file(name) }
    var options = TreeOptions()
    options.filter.includes = [Glob("*.jpg")]
    options.filter.excludes = [Glob("thumbs")]
    #expect(Set(arrivals(scratch.path.appending("dir"), options: options)) == ["dir/a.jpg", "dir/2024/d.jpg"])
    options.filter = GlobFilter(includes: [Glob("dir/2024/*")])
    #expect(arrivals(scratch.path.appending("dir"), options: options) == ["dir/2024/d.jpg"])
    options.filter = GlobFilter(includes: [Glob("[ab].*")])
    #expect(arrivals(scratch.path.appending("dir"), options: options) == ["dir/a.jpg", "dir/b.MOV"])
  }

  /// A broken link is no failure if a file of its name would not be sent.
  @Test func aLinkThatLeadsNowhereFailsOnlyWhereAFileOfItsNameWouldBeSent() {
    scratch.file("dir/a.jpg")
    scratch.link("dir/b.txt", to: "gone")
    let dir = scratch.path.appending("dir")
    for filter in [GlobFilter(includes: [Glob("*.jpg")]), GlobFilter(excludes: [Glob("*.txt")])] {
      for roots in [[dir], [dir.appending("a.jpg"), dir.appending("b.txt")]] {
        let events = walk(roots, TreeOptions(filter: filter))
        #expect(events.count == 1 && files(events).count == 1, "\(events)")
      }
    }
    #expect(walk([dir], TreeOptions(filter: GlobFilter(includes: [Glob("*.txt")]))).count == 1)
  }

  @Test func aSourceWithoutFilesIsReported() {
    scratch.file("full/a.jpg")
    scratch.file("filtered/a.txt")
    scratch.file("hidden/.a.jpg")
    scratch.folder("empty/a/b")
    scratch.link("empty/a/link", to: "b")
    let told = Mutex<[BytePath]>([])
    let tally = FilterStatistics(foundNothing: { path, _ in told.withLock { $0.append(path.name) } })
    let roots = ["empty", "full", "filtered", "hidden", "gone"].map { scratch.path.appending($0) }
    let tree = FileTree(roots, TreeOptions(filter: GlobFilter(includes: [Glob("*.jpg")])), counting: tally)
    while !tree.next(max: 1).isEmpty {}
    #expect(told.withLock { $0 } == ["empty", "hidden"])
  }

  @Test(
    arguments: [
      ("thumbs/", ["2024/a.jpg", "2024/b/a.jpg", "a.jpg", "b/thumbs"]),
      ("/a.jpg", ["2024/a.jpg", "2024/b/a.jpg", "2024/thumbs/a.jpg", "b/thumbs", "thumbs/a.jpg"]),
      ("./a.jpg", ["2024/a.jpg", "2024/b/a.jpg", "2024/thumbs/a.jpg", "b/thumbs", "thumbs/a.jpg"]),
      ("/thumbs/", ["2024/a.jpg", "2024/b/a.jpg", "2024/thumbs/a.jpg", "a.jpg", "b/thumbs"]),
      ("2024/b/", ["2024/a.jpg", "2024/thumbs/a.jpg", "a.jpg", "b/thumbs", "thumbs/a.jpg"]),
      ("b//", ["2024/a.jpg", "2024/thumbs/a.jpg", "a.jpg", "thumbs/a.jpg"]),
      ("/b", ["2024/a.jpg", "2024/b/a.jpg", "2024/thumbs/a.jpg", "a.jpg", "thumbs/a.jpg"]),
    ] as [(BytePath, [BytePath])])
  func aPatternMayNameAFolderOrTheTopOfASource(_ pattern: BytePath, _ left: [BytePath]) {
    let all: [BytePath] = [
      "2024/a.jpg", "2024/b/a.jpg", "2024/thumbs/a.jpg", "a.jpg", "b/thumbs", "thumbs/a.jpg",
    ]
    for name in all { scratch.file(BytePath("dir").appending(name)) }
    let dir = scratch.path.appending("dir")
    var options = TreeOptions(filter: GlobFilter(excludes: [Glob(pattern)]))
    #expect(arrivals(BytePath(dir.bytes + [UInt8(ascii: "/")]), options: options).sorted() == left)
    options.filter.sourceNames = ["dir"]
    #expect(arrivals(dir, options: options).sorted() == left.map { BytePath("dir").appending($0) })
    // An include pattern selects the files that the same exclude pattern leaves out.
    options.filter = GlobFilter(includes: [Glob(pattern)], sourceNames: ["dir"])
    if pattern != "/b" {
      #expect(
        arrivals(dir, options: options).sorted()
          == all.filter { !left.contains($0) }.map { BytePath("dir").appending($0) })
    }
  }

  @Test func aVeryDeepTreeNeedsNeitherStackNorDescriptors() {
    let depth = 1500
    let deep = BytePath(Array(repeating: [UInt8(ascii: "d")], count: depth).joined(separator: [UInt8(ascii: "/")]))
    scratch.file(deep.appending("a.jpg"))
    #expect(arrivals(BytePath(scratch.path.bytes + [UInt8(ascii: "/")])) == [deep.appending("a.jpg")])
  }

  /// The tree is deeper than the maximum path length of the system.
  @Test func aTreeBeyondThePathLimitIsWalkedAndRead() throws {
    let name = [UInt8](repeating: UInt8(ascii: "n"), count: 250)
    var folder = scratch.path.open(O_RDONLY | O_DIRECTORY)
    for _ in 0..<40 {
      #expect(BytePath(name).withCString { mkdirat(folder, $0, 0o755) } == 0)
      let next = BytePath(name).withCString { openAt(folder, $0, O_RDONLY | O_DIRECTORY) }
      close(folder)
      folder = next
    }
    close(openAt(folder, "a.jpg", O_WRONLY | O_CREAT))
    close(folder)
    let deep = BytePath(Array(repeating: name, count: 40).joined(separator: [UInt8(ascii: "/")])).appending("a.jpg")
    let events = walk([BytePath(scratch.path.bytes + [UInt8(ascii: "/")])])
    #expect(files(events) == [deep])
    let path = scratch.path.appending(deep)
    #expect(path.bytes.count > 10_000)
    #expect(try FileSource(path).info(Cancellation()).length == 0)
    var status = stat()
    #expect(path.status(&status) == 0 && status.st_size == 0)
    #expect(BytePath(path.bytes + [UInt8(ascii: "x")]).status(&status) == -1 && errno == ENOENT)
    #expect(BytePath([UInt8](repeating: UInt8(ascii: "n"), count: 5000)).open(O_RDONLY) == -1 && errno == ENAMETOOLONG)
    // `Scratch` deletes by path, which is too long here.
    let removal = try Process.run(URL(filePath: "/bin/rm"), arguments: ["-rf", "\(scratch.path)/\(BytePath(name))"])
    removal.waitUntilExit()
    #expect(removal.terminationStatus == 0)
  }

  @Test func aLargeFolderComesWhole() {
    let count = FileTree.sortedLimit + 500
    for index in 0..<count { scratch.file(BytePath("dir/\(index)"), []) }
    let found = files(walk([scratch.path.appending("dir")], batch: 1000))
    #expect(found.count == count && Set(found).count == count)
  }

  @Test func namesInOnePieceComeBackInOrder() {
    var names = NameList()
    for name in ["one", "two", "three"] as [BytePath] { names.append(name) }
    var reversed = names.reversed()
    #expect(names.popLast() == "three" && names.popLast() == "two" && names.popLast() == "one" && names.isEmpty)
    #expect(reversed.popLast() == "one" && reversed.popLast() == "two" && reversed.popLast() == "three")
    #expect(reversed.isEmpty)
  }
}

private func openAt(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
  openat(folder, path, flags | O_CLOEXEC, 0o644)
}

private func makeSocket(_ path: BytePath) -> Bool {
  let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
  return withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  } == 0
}
