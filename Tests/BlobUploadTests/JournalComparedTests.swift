import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// Files that were found to have the same bytes at a destination.
  struct Compared {
    private let version = ComparedVersion(
      source: Validator(version: "1", instance: "i"), remote: "\"tag\" date", isReadBack: true)

    @Test func comparedVersionsSurviveTheProcess() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      try await journal.comparisons.keep([(intent("a.jpg"), version)])
      // The journal is not closed, as after a kill.
      let other = try await folder.open()
      let elsewhere = intent("a.jpg", from: "/elsewhere/a.jpg")
      #expect(
        try await other.comparisons.versions(of: [intent("b.jpg"), intent("a.jpg"), elsewhere]).map(\.?.untimed) == [
          nil, version, nil,
        ])
      var again = version
      (again.remote, again.isReadBack) = ("\"other\"", false)
      try await other.comparisons.keep([(intent("a.jpg"), again)])
      #expect(try await journal.comparisons.versions(of: [intent("a.jpg")]).map(\.?.untimed) == [again])
      // The files were found to differ.
      try await journal.comparisons.keep([(intent("a.jpg"), nil)])
      #expect(try await other.comparisons.versions(of: [intent("a.jpg")]) == [nil])
    }

    /// A card that is inserted again has other inode numbers, and so may a disk of another file.
    @Test func anotherVersionOfTheSourceIsNotTheComparedOne() {
      func info(_ version: String, _ instance: String, lasts: Bool = false) -> BlobInfo {
        BlobInfo(
          length: 1, validator: Validator(version: version, instance: instance), instanceLasts: lasts, modified: nil)
      }
      #expect(version.isOf(info("1", "i")))
      #expect(!version.isOf(info("2", "i")))
      #expect(!version.isOf(info("1", "j")))
      #expect(!version.isOf(BlobInfo(length: 1)))
      let onDisk = ComparedVersion(source: Validator(version: "1", instance: "7-42-99"), remote: "", isReadBack: false)
      #expect(onDisk.isOf(info("1", "8-42-99", lasts: true)))
      #expect(!onDisk.isOf(info("1", "8-42-99")))
    }

    @Test func aJournalOfVersion11GetsTheTable() async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      try Database(folder.path).execute("DROP TABLE compared; PRAGMA user_version=11")
      let journal = try await folder.open()
      try await journal.comparisons.keep([(intent(), version)])
      #expect(try await journal.comparisons.versions(of: [intent()]).map(\.?.untimed) == [version])
    }
  }
}

extension ComparedVersion {
  /// Without the time at which the journal got it.
  fileprivate var untimed: ComparedVersion {
    var version = self
    version.noted = nil
    return version
  }
}
