@testable import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// Names that other programs take while a group is published: the members that have theirs already lose them again.
struct GroupHideTests {
  private static let total: Int64 = 10_000
  private let folder = try! TestFolder()

  private func open() throws -> FileStore { try FileStore(folder.path, expire: .seconds(60), maxTotal: Self.total) }

  private func member(
    _ name: String, _ bytes: [UInt8], in store: FileStore, _ existing: ExistingRule = .keep
  ) throws -> PendingMember {
    let reception = try store.begin(length: Int64(bytes.count))
    try bytes.withUnsafeBytes { try reception.append(.bytes($0)) }
    let record = UploadRecord(
      reception.id, target: try ServedPath(name.utf8), existing: existing, length: Int64(bytes.count), metadata: "")
    try store.save(record)
    return PendingMember(reception: reception, record: record)
  }

  private func data(_ member: PendingMember) -> BytePath { BytePath(".fullbore/\(member.record.id).data") }

  /// The last member has the name of the first one, which is free until the first one gets it.
  @Test func membersWaitAgainIfANameIsTaken() throws {
    let store = try open()
    defer { store.close() }
    let members = try [("s/a.jpg", 100), ("a.mov", 200), ("s/a.jpg", 300)].map { name, count in
      try member(name, pattern(count), in: store)
    }
    let error = #expect(throws: ServerError.self) { try store.groups.publish(members, isResumed: false) }
    #expect(error?.status == 503)
    #expect(folder.read("s/a.jpg") == nil && folder.read("a.mov") == nil)
    for (member, count) in zip(members, [100, 200, 300]) { #expect(folder.read(data(member)) == pattern(count)) }
    #expect(!folder.kept.contains { $0.hasSuffix(".group") })
    #expect(store.unfinished == 3)
    #expect(store.free == Self.total - 600)
    // Nothing is lost: without the last one, they can be published.
    _ = try store.groups.publish(Array(members.dropLast()), isResumed: false)
    #expect(folder.read("s/a.jpg") == pattern(100) && folder.read("a.mov") == pattern(200))
    #expect(store.free == Self.total - 600)
  }

  /// The file that it has replaced is gone, so its name would be empty.
  @Test func aMemberThatHasReplacedAFileStays() throws {
    folder.write("a.jpg", pattern(50))
    let store = try open()
    defer { store.close() }
    let members = try [("a.jpg", 100), ("a.mov", 200), ("a.mov", 300)].map { name, count in
      try member(name, pattern(count), in: store, name == "a.jpg" ? .replace : .keep)
    }
    #expect(throws: ServerError.self) { try store.groups.publish(members, isResumed: false) }
    #expect(folder.read("a.jpg") == pattern(100))
    #expect(folder.read("a.mov") == nil)
    #expect(folder.read(data(members[1])) == pattern(200))
  }

  /// The server was killed while it published a group. Since then, other programs have put a file in the place of a member,
  /// and have deleted the folder of another one.
  @Test func filesOfOthersStay() throws {
    let store = try open()
    defer { store.close() }
    let names = ["a.jpg", "s/a.mov", "a.xmp", "a.aae"]
    let members = try names.map { try member($0, pattern(100), in: store) }
    folder.makeFolder("s")
    for (name, member) in zip(names, members.dropLast()) { folder.rename(data(member), to: BytePath(name)) }
    folder.write("other", pattern(10))
    folder.rename("other", to: "a.jpg")
    folder.rename("s", to: "t")
    #expect(store.groups.hideGroup(members.map(\.record.id)))
    #expect(folder.read("a.jpg") == pattern(10))
    #expect(folder.read("t/a.mov") == pattern(100))
    #expect(folder.read("a.xmp") == nil)
    #expect(folder.read(data(members[2])) == pattern(100))
    #expect(folder.read(data(members[3])) == pattern(100))
  }

  /// A program takes the last name as soon as it finds the first one. Either it is too late, or no member appears.
  @Test func aProgramThatWaitsForTheFirstName() throws {
    let server = try TestServer(over: folder)
    let deadline = ContinuousClock.now + .seconds(60)
    var (rounds, conflicts) = (0, 0)
    while conflicts < 3, ContinuousClock.now < deadline {
      rounds += 1
      let names = (1...16).map { "\(rounds)-\($0)" }
      func put(_ index: Int) throws -> Int {
        let group = groupField(index + 1, of: names.count, id: "\(rounds)")
        return try server.ask("PUT", "/\(names[index])", [group], body: pattern(1000, seed: index)).status
      }
      for index in names.indices.dropLast() { #expect(try put(index) == 202) }
      let places = [names[0], names[15]].map { folder.path.appending(BytePath($0)) }
      let program = Background {
        while places[0].withCString({ access($0, F_OK) }) != 0 {
          if ContinuousClock.now > deadline { return false }
        }
        let file = places[1].withCString { Platform.open($0, O_WRONLY | O_CREAT | O_EXCL, 0o644) }
        if file >= 0 { close(file) }
        return file >= 0
      }
      let status = try put(15)
      if program.value() == true {
        conflicts += 1
        #expect(status == 503)
        #expect(names.compactMap { folder.read(BytePath($0)) } == [[]])
      } else {
        #expect(status == 201)
        for (index, name) in names.enumerated() { #expect(folder.read(BytePath(name)) == pattern(1000, seed: index)) }
      }
    }
    #expect(conflicts == 3, "\(rounds) rounds")
  }
}

extension FileStore {
  fileprivate var groups: FileGroups { FileGroups(files: self) }
}
