import BlobSQLite
import Blobs
import Foundation
import Testing

extension EndToEnd {
  /// Journals that cannot be written, are damaged, or are no journals: the messages of a push, and that it still sends
  /// correctly.
  @Suite(.serialized) struct JournalTests {
    let scratch = try! Scratch()

    @Test func aDamagedJournalIsKeptAside() async throws {
      let file = try scratch.file("gallery/IMG_1.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", file, server.url, in: scratch).end == .exited(0))
      let journal = scratch.path("journal.sqlite")
      for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: journal + suffix) }
      let garbage = Data(repeating: 0x5A, count: 20_000)
      try garbage.write(to: URL(fileURLWithPath: journal))

      let (asked, status) = try await fullbore("status", in: scratch)
      #expect(asked == .exited(1) && status.errors.contains("The next push keeps it aside"), "\(status.errors)")
      let (end, push) = try await fullbore("push", file, server.url, in: scratch)
      #expect(end == .exited(0), "\(push.errors)")
      #expect(push.errors.contains("\(journal) is damaged: it is kept as \(journal).damaged-"), "\(push.errors)")
      let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
      let kept = try #require(names.first { $0.hasPrefix("journal.sqlite.damaged-") })
      #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path(kept))) == garbage)
      #expect(try await fullbore("push", file, server.url, in: scratch).command.errors.isEmpty)
    }

    @Test func aFileThatIsNoJournalIsLeftUnchanged() async throws {
      let file = try scratch.file("gallery/IMG_1.jpg", 100_000)
      let before = try Data(contentsOf: URL(fileURLWithPath: file))
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--journal", file, file, server.url, in: scratch)
      #expect(end == .exited(1) && push.errors.contains("--journal FILE"), "\(push.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == before)
      #expect(Folder(scratch.path("gallery")).files().count == 1)
      let (_, status) = try await fullbore("status", "--journal", file, in: scratch)
      #expect(status.errors.contains("It may be no journal, so a push does nothing with it"), "\(status.errors)")
      #expect(!status.errors.contains("keeps it aside"), "\(status.errors)")
      #expect(server.folder.files().isEmpty)
    }

    @Test(arguments: [
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, name TEXT)", "CREATE TABLE upload(id)", "PRAGMA user_version=9",
      "CREATE TABLE upload(id); PRAGMA user_version=9", "CREATE VIEW v AS SELECT 1",
    ])
    func aDatabaseOfAnotherProgramIsLeftAlone(_ sql: String) async throws {
      let path = scratch.path("photos.db")
      try Database(BytePath(path)).execute(sql)
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      let file = try scratch.file("gallery/IMG_1.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--journal", path, file, server.url, in: scratch)
      #expect(end == .exited(1) && push.errors.contains("a database of another program"), "\(push.errors)")
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    /// The journal is in a folder of another user.
    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func aJournalThatMayNotBeReadIsNotMissing() async throws {
      let folder = scratch.path("private")
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let journal = folder + "/journal.sqlite"
      let file = try scratch.file("gallery/IMG_1.jpg", 1000)
      let server = try await ServeProcess.start(in: scratch)
      let (end, _) = try await fullbore("push", "--journal", journal, file, server.url, in: scratch)
      #expect(end == .exited(0))
      for mode in [0o700, 0o755] {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder)
        for words in [["status"], ["resume"], ["abort", "--all"]] {
          let command = try Command(
            "/usr/sbin/runuser", ["-u", "nobody", "--", Tool.fullbore] + words + ["--journal", journal], in: scratch)
          #expect(try await command.wait() == .exited(1), "\(words) \(mode)")
          #expect(
            command.errors.lowercased().contains("permission denied") || command.errors.contains("unable to open"),
            "\(command.errors)")
        }
      }
    }

    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"))
    func aJournalOnAReadOnlyDiskIsRefused() async throws {
      let file = try scratch.file("gallery/IMG_1.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Namespace.push(file, server.url, disk: "ro,size=1m", in: scratch)
      #expect(try await push.wait() == .exited(1))
      #expect(push.errors.contains("Read-only file system"), "\(push.errors)")
      #expect(push.errors.contains("Nothing was done; --journal FILE names another place"), "\(push.errors)")
      #expect(server.folder.files().isEmpty)
    }

    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"))
    func aJournalOnAFullDiskIsRefused() async throws {
      let file = try scratch.file("gallery/IMG_1.jpg", 100_000)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Namespace.push(file, server.url, disk: "size=8k", in: scratch)
      #expect(try await push.wait() == .exited(1))
      #expect(push.errors.contains("full") || push.errors.contains("No space left"), "\(push.errors)")
      #expect(push.errors.contains("--journal FILE names another place"), "\(push.errors)")
      #expect(server.folder.files().isEmpty)
    }

    /// The push was killed, for example because the disk was full: its claims are still in the journal.
    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"))
    func aJournalOnAFullDiskIsReadByStatus() async throws {
      let file = try scratch.file("gallery/film.mov", 8 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command.fullbore("push", "--bwlimit", "4M", file, "tus+" + server.url, in: scratch)
      try await until("a part has arrived") { server.folder.unfinished() > 1 << 20 ? true : nil }
      push.kill(SIGKILL)
      try await push.wait()
      let status = try Namespace.statusOnFullDisk(scratch.path("journal.sqlite"), in: scratch)
      #expect(try await status.wait() == .exited(0), "\(status.output)\(status.errors)")
      #expect(status.output.contains("interrupted: 1 file, "), "\(status.output)")
    }

    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"))
    func aJournalOnAReadOnlyDiskIsReadByStatus() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let file = try scratch.file("gallery/a #1?.jpg", 10)
      #expect(try await fullbore("push", file, server.url, in: scratch).end == .exited(0))
      let journal = scratch.path("journal.sqlite")
      let whole = try Namespace.statusOnReadOnlyDisk([journal, journal + "-wal", journal + "-shm"], in: scratch)
      #expect(try await whole.wait() == .exited(0), "\(whole.output)\(whole.errors)")
      #expect(whole.output.contains("done: 1 file, "), "\(whole.output)")
      // The copy lacks the index of the write-ahead log, which only a writer can create.
      let cut = try Namespace.statusOnReadOnlyDisk([journal, journal + "-wal"], in: scratch)
      #expect(try await cut.wait() == .exited(1), "\(cut.output)\(cut.errors)")
      #expect(cut.errors.contains("copy both files to another disk"), "\(cut.errors)")
      try Database(BytePath(journal)).execute("PRAGMA wal_checkpoint(TRUNCATE)")
      let alone = try Namespace.statusOnReadOnlyDisk([journal], in: scratch)
      #expect(try await alone.wait() == .exited(0), "\(alone.output)\(alone.errors)")
      #expect(alone.output.contains("done: 1 file, "), "\(alone.output)")
    }

    @Test(.enabled(if: Namespace.isThere, "unshare cannot mount here"))
    func aDiskThatFillsUpEndsThePushAndLosesNothing() async throws {
      try scratch.folder("gallery")
      for number in 0..<2000 {
        try Data("small file \(number)".utf8).write(to: URL(fileURLWithPath: scratch.path("gallery/\(number).jpg")))
      }
      let gallery = Folder(scratch.path("gallery"))
      let server = try await ServeProcess.start(in: scratch)
      let push = try Namespace.push(gallery.path + "/", server.url, disk: "size=400k", in: scratch)
      #expect(try await push.wait() == .exited(1))
      #expect(push.errors.contains("Nothing is lost: run it again"), "\(push.errors)")
      // Every file that has arrived is complete.
      for name in server.folder.files().keys { #expect(gallery.hasSameBytes(name, as: server.folder)) }
      let (end, again) = try await fullbore("push", gallery.path + "/", server.url, in: scratch)
      #expect(end == .exited(0), "\(again.errors)")
      gallery.expectSame(as: server.folder)
    }

    /// The clock was wrong when the file was written, or is wrong now.
    @Test func aFileOfTomorrowIsSentOnce() async throws {
      let file = try scratch.file("gallery/IMG_1.jpg", 100_000)
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: 4_100_000_000)], ofItemAtPath: file)
      let server = try await ServeProcess.start(in: scratch)
      #expect(try await fullbore("push", file, server.url, in: scratch).end == .exited(0))
      let (end, again) = try await fullbore("push", file, server.url, in: scratch)
      #expect(end == .exited(0) && again.output.contains("1 done before"), "\(again.output)\(again.errors)")
      Folder(scratch.path("gallery")).expectSame(as: server.folder)
    }
  }
}

/// A file system that is mounted for one process only, and disappears with it.
enum Namespace {
  static let isThere: Bool = {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()

  /// Runs `status` with a copy of the journal on a full file system, without the index of its write-ahead log.
  static func statusOnFullDisk(_ journal: String, in scratch: Scratch) throws -> Command {
    let disk = try scratch.folder("disk")
    let script = """
      mount -t tmpfs -o size=1m tmpfs "$1" && cp "$2" "$2-wal" "$1" && { cat /dev/zero > "$1/fill"; shift 2; exec "$@"; }
      """
    return try Command(
      "unshare",
      [
        "-rm", "sh", "-c", script, "sh", disk, journal, Tool.fullbore, "status", "--journal",
        disk + "/journal.sqlite",
      ], in: scratch)
  }

  /// Runs `status` with a copy of the journal's files on a read-only file system, in a folder whose name contains
  /// characters that are special in a URI.
  static func statusOnReadOnlyDisk(_ files: [String], in scratch: Scratch) throws -> Command {
    let disk = try scratch.folder("disk")
    let script = """
      disk=$1 tool=$2; shift 2; folder="$disk/a?b#c%20"
      mount -t tmpfs -o size=10m tmpfs "$disk" && mkdir "$folder" && cp "$@" "$folder" &&
        mount -o remount,ro "$disk" && exec "$tool" status --journal "$folder/journal.sqlite"
      """
    return try Command("unshare", ["-rm", "sh", "-c", script, "sh", disk, Tool.fullbore] + files, in: scratch)
  }

  /// Pushes with a journal on such a file system.
  static func push(_ source: String, _ url: String, disk options: String, in scratch: Scratch) throws -> Command {
    let disk = try scratch.folder("disk")
    return try Command(
      "unshare",
      [
        "-rm", "sh", "-c", "mount -t tmpfs -o \"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"", "sh", options, disk,
        Tool.fullbore, "push", "--journal", disk + "/journal.sqlite", source, url,
      ], in: scratch)
  }
}
