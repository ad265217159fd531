import BlobTesting
import TestSupport
import Blobs
import Platform
import Testing

struct FileSourceTests {
  private static let length = 100_000
  private let bytes = PatternSource(length: 100_000).bytes(count: length)

  /// A change to a file while it is read.
  struct Event: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: BlobError.Code
    let message: String
    let happen: @Sendable (TemporaryFile) throws -> Void

    static let all = [
      Event(testDescription: "shrinks", code: .truncated, message: "ended at byte 50000 of 100000") {
        try $0.resize(to: 50_000)
      },
      Event(testDescription: "shrinks by one byte", code: .truncated, message: "ended at byte 99999 of 100000") {
        try $0.resize(to: 99_999)
      },
      Event(testDescription: "shrinks to before what was read", code: .truncated, message: "ended at byte 10000 of") {
        try $0.resize(to: 1)
      },
      Event(testDescription: "is emptied", code: .truncated, message: "ended at byte 10000 of") {
        try $0.resize(to: 0)
      },
      Event(testDescription: "grows", code: .changed, message: "went from 100000 to 100001 bytes") {
        try $0.resize(to: 100_001)
      },
      Event(testDescription: "is emptied and filled again", code: .changed, message: "was written to") {
        try $0.resize(to: 0)
        try $0.overwrite(PatternSource(length: 100_000, seed: 9).bytes(count: 100_000))
      },
      Event(testDescription: "is rewritten in place, where it was read", code: .changed, message: "was written to") {
        try $0.overwrite([1, 2, 3], at: 5)
      },
      Event(testDescription: "is rewritten in place, further on", code: .changed, message: "was written to") {
        try $0.overwrite([1, 2, 3], at: 99_000)
      },
      Event(testDescription: "is replaced by another", code: .changed, message: "was replaced or deleted") { file in
        let other = try TemporaryFile.lasting([1])
        try check(other.withCString { other in file.path.withCString { rename(other, $0) } } == 0)
      },
      Event(testDescription: "is deleted", code: .changed, message: "was replaced or deleted") { file in
        try check(file.path.withCString { unlink($0) } == 0)
      },
      Event(testDescription: "is touched", code: .changed, message: "was written to") {
        try $0.setModified(FileStamp.now)
      },
      Event(testDescription: "gets other rights", code: .changed, message: "was moved, linked or given other rights") {
        file in try check(file.path.withCString { chmod($0, 0o640) } == 0)
      },
    ]
  }

  @Test(arguments: Event.all, [Int64(length), nil])
  func fileThatChangesWhileItIsReadNeverLooksComplete(_ event: Event, _ wanted: Int64?) throws {
    let file = try TemporaryFile(bytes)
    let reader = try BlobSlice(file.source, length: wanted).open(Cancellation())
    var read = try readNext(reader, 10_000)
    try event.happen(file)
    let error = failure { () throws(BlobError) in
      while true {
        let more = try readNext(reader, 7000)
        read += more
        if more.isEmpty { return }
      }
    }
    #expect(error?.code == event.code)
    #expect(error?.message.contains(event.message) == true, "\(error?.message ?? "no error")")
    #expect(error?.message.contains(file.path.description) == true)
    #expect(read.count < Self.length, "the last byte must not be handed over")
  }

  @Test func partThatEndsInTheMiddleIsNotOfTwoVersions() throws {
    let file = try TemporaryFile(bytes)
    let reader = try BlobSlice(file.source, start: 0, length: 20_000).open(Cancellation())
    _ = try readNext(reader, 10_000)
    try file.overwrite([1], at: 15_000)
    #expect(failure { () throws(BlobError) in try readNext(reader, 10_000) }?.code == .changed)
  }

  @Test func fileThatGrowsGivesNoByteMoreThanItsLength() throws {
    let file = try TemporaryFile(bytes)
    let reader = try file.source.open(at: 0, Cancellation())
    try file.resize(to: 200_000)
    #expect(try readNext(reader, Self.length) == bytes)
    let error = failure { () throws(BlobError) in try readNext(reader, 1) }
    #expect(error?.code == .changed)
    #expect(error?.message.contains("goes on after the 100000 bytes") == true)
  }

  @Test func emptyFileThatGrowsIsChanged() throws {
    let file = try TemporaryFile()
    for length in [0, nil] as [Int64?] {
      try file.resize(to: 0)
      let reader = try BlobSlice(file.source, length: length).open(Cancellation())
      try file.overwrite([1])
      #expect(failure { () throws(BlobError) in try readNext(reader, 1) }?.code == .changed)
    }
  }

  @Test func otherVersionIsRefusedWhenItIsOpenedAgain() throws {
    let file = try TemporaryFile(bytes)
    let slice = BlobSlice(file.source, start: 100, length: 10, validator: try file.source.info().validator)
    #expect(try slice.readAll() == Array(bytes[100..<110]))
    try file.overwrite([1])
    #expect(failure { () throws(BlobError) in try slice.open(Cancellation()) }?.code == .changed)
  }

  @Test func theValidatorDistinguishesContentFromAttributes() throws {
    let file = try TemporaryFile(bytes)
    let before = try #require(try file.source.info().validator)
    #expect(before.match(with: before) == .same)
    try check(file.path.withCString { chmod($0, 0o640) } == 0)
    #expect(try file.source.info().validator?.match(with: before) == .unsure)
    try file.overwrite([1])
    #expect(try file.source.info().validator?.match(with: before) == .different)
  }

  @Test func fileThatWasJustWrittenIsWaitedFor() throws {
    for _ in 0..<3 {
      let file = try TemporaryFile([1, 2, 3], age: .zero)
      let info = try file.source.info()
      let modified = Int64(try #require(info.validator?.version.split(separator: "-").last)) ?? 0
      #expect(FileStamp.now - modified >= 20_000_000)
    }
  }

  @Test func fileThatIsBeingWrittenDoesNotComeToRest() throws {
    let file = try TemporaryFile(bytes)
    let touched = FileStamp.now
    try file.setModified(touched)
    // However often the stamp is read, the file was written a millisecond ago.
    let source = FileSource(file.path, now: { touched + 1_000_000 })
    let error = failure { () throws(BlobError) in try source.info() }
    #expect(error?.code == .changed)
    #expect(error?.message.contains("did not come to rest") == true)

    let cancel = Cancellation()
    let waiting = Background { failure { () throws(BlobError) in try source.open(at: 0, cancel) }?.code }
    #expect(waiting.value(within: .milliseconds(30)) == nil)
    cancel.cancel()
    #expect(waiting.value() == .cancelled)
  }

  @Test func waitIsAsLongAsTheTimesAreCoarse() {
    let second: Int64 = 1_000_000_000
    let now = 1_700_000_000 * second
    func wait(_ modified: Int64, _ changed: Int64) -> Int64 {
      FileStamp(device: 1, inode: 1, size: 1, modified: modified, changed: changed).unsettled(at: now)
    }
    #expect(wait(now - 60 * second, now - 60 * second) == 0)
    #expect(wait(now - 5_000_001, now - 5_000_001) == 14_999_999)
    #expect(wait(now - 20_000_000, now - 20_000_001) == 0)
    #expect(wait(now, now) == 2 * second, "whole even seconds: FAT")
    #expect(wait(now - second, now - second) == 0, "whole odd seconds: 1 s")
    #expect(wait(now, now - 3 * second) == second)
    #expect(wait(now - 60 * second, now - 5_000_000) == 15_000_000, "a chosen time, just set")
    #expect(wait(now - second, now - second + 1) == 0, "a chosen time that is whole by chance")
    #expect(wait(now + 5_000_000, now - 60 * second) == 0, "a time in the future")
    #expect(wait(now + 9 * second, now - 1) == 19_999_999)
  }

  @Test func aPathThatIsNoRegularFileIsUnsupported() throws {
    let folder = TemporaryFile.folder
    let pipe = folder.appending("pipe")
    try check(pipe.withCString { mkfifo($0, 0o600) } == 0)
    let socket = try unixSocket(at: folder.appending("socket"))
    defer { close(socket) }
    let kinds: [(BytePath, String)] = [
      (folder, "a folder"), (pipe, "a pipe"), (folder.appending("socket"), "a socket or a device"),
      ("/dev/null", "a device"),
    ]
    for (path, kind) in kinds {
      let error = failure { () throws(BlobError) in try FileSource(path).info() }
      #expect(error?.code == .unsupported, "\(path)")
      #expect(error?.message == "open \(path): not a regular file, but \(kind)")
    }
  }

  @Test func fileThatHidesItsLengthIsNotReadAsEmpty() throws {
    let error = failure { () throws(BlobError) in try BlobSlice(FileSource("/proc/self/status")).readAll() }
    #expect(error?.code == .unsupported)
  }

  @Test func aMissingPathIsNotFound() {
    for path in ["/nowhere/at all", "/etc/passwd/x", "/etc/pass\0wd", "/etc/passwd\0", ""] as [BytePath] {
      let error = failure { () throws(BlobError) in try FileSource(path).open(at: 0, Cancellation()) }
      #expect(error?.code == .notFound, "\(path)")
    }
  }

  @Test(.enabled(if: geteuid() != 0, "root may read every file: run as another user to see this"))
  func fileWithoutRightsIsAMatterOfPermission() throws {
    let file = try TemporaryFile(bytes)
    try check(file.path.withCString { chmod($0, 0) } == 0)
    #expect(failure { () throws(BlobError) in try file.source.info() }?.code == .permission)
  }

  @Test func offsetsAreThoseOfTheFile() throws {
    let file = try TemporaryFile(bytes)
    for offset in [-1, 100_001, .max, .min] as [Int64] {
      #expect(failure { () throws(BlobError) in try file.source.open(at: offset, Cancellation()) }?.code == .outOfRange)
    }
  }

  @Test func bytesBeyondFourGiBAreFound() throws {
    let file = try TemporaryFile()
    let start: Int64 = 5 << 30
    try file.overwrite(bytes, at: start)
    #expect(try file.source.info().length == start + 100_000)
    #expect(try file.source.readAll(at: start) == bytes)
    #expect(try BlobSlice(file.source, start: start + 99_999, length: 1).readAll() == [bytes[99_999]])
    let region = try BlobSlice(file.source, start: start, length: 1).open(Cancellation()).fileRegion()
    #expect(region?.offset == start)
  }

  @Test func regionMovesWithWhatWasRead() throws {
    let file = try TemporaryFile(bytes)
    let reader = try file.source.open(at: 10, Cancellation())
    _ = try readNext(reader, 5)
    let region = try #require(reader.fileRegion())
    #expect(region.offset == 15)
    var byte: UInt8 = 0
    #expect(pread(region.descriptor, &byte, 1, 15) == 1 && byte == bytes[15])
  }

  private func unixSocket(at path: BytePath) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
    let status = withUnsafeBytes(of: &address) {
      bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
    try check(status == 0)
    return descriptor
  }
}
