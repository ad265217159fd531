import BlobTesting
import TestSupport
import Blobs
import Platform
import Testing

struct OpenFileSourceTests {
  private static let length = 100_000
  private let bytes = PatternSource(length: 100_000).bytes(count: length)

  /// A change to a file while it is read; `code` nil: reading continues.
  struct Event: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: BlobError.Code?
    let happen: @Sendable (TemporaryFile) throws -> Void

    init(_ name: String, _ code: BlobError.Code? = nil, _ happen: @escaping @Sendable (TemporaryFile) throws -> Void) {
      (testDescription, self.code, self.happen) = (name, code, happen)
    }

    static let all = [
      Event("is renamed") { try $0.rename() },
      Event("is renamed, and another takes its name") { file in
        try file.rename()
        let other = try TemporaryFile.lasting([UInt8](repeating: 7, count: 100_000))
        try check(other.withCString { other in file.path.withCString { Platform.rename(other, $0) } } == 0)
      },
      Event("gets other rights") { file in try check(file.path.withCString { chmod($0, 0o640) } == 0) },
      Event("gets a second name") { file in
        let other = BytePath(file.path.bytes + Array("-link".utf8))
        try check(file.path.withCString { old in other.withCString { link(old, $0) } } == 0)
      },
      Event("is read by others") { file in _ = try file.source.readAll() },
      Event("is opened for writing, and not written", .changed) { file in
        try file.touch { _ in }
      },
      Event("is rewritten", .changed) { try $0.overwrite([1, 2, 3], at: 99_000) },
      Event("is renamed and rewritten", .changed) { file in
        let descriptor = file.path.withCString { open($0, O_WRONLY) }
        defer { close(descriptor) }
        try file.rename()
        try check(pwrite(descriptor, [1], 1, 99_000) == 1)
      },
      Event("is rewritten, and has its old time again", .changed) { file in
        try file.touch { descriptor in try check(pwrite(descriptor, [1], 1, 99_000) == 1) }
      },
      Event("is rewritten through a mapping, and has its old time again", .changed) { file in
        try file.touch { try write(throughMappingOf: $0, isKept: false) }
      },
      Event("is rewritten through a mapping that stays, and has its old time again", .changed) { file in
        let descriptor = file.path.withCString { open($0, O_RDWR) }
        // The mapping stays for the rest of the process, like that of a program that continues to write.
        try keepTime(of: file) { try write(throughMappingOf: descriptor, isKept: true) }
        close(descriptor)
      },
      Event("is renamed, cut short and made as long again", .changed) { file in
        try keepTime(of: file) {
          try file.resize(to: 10)
          try file.resize(to: 100_000)
        }
        try file.rename()
      },
      Event("grows", .changed) { try $0.resize(to: 100_001) },
      Event("shrinks", .truncated) { try $0.resize(to: 50_000) },
      Event("is touched", .changed) { try $0.setModified(FileStamp.now) },
      Event("is deleted", .changed) { file in try check(file.path.withCString { unlink($0) } == 0) },
    ]
  }

  /// Checked in the middle of one reader, between two readers, and at the end of a part.
  @Test(arguments: Event.all) func aReaderContinuesOnlyIfTheFileIsUnchanged(_ event: Event) throws {
    for isReopened in [false, true] {
      let file = try TemporaryFile(bytes)
      try file.settle()
      let source = OpenFileSource(file.path)
      let validator = try #require(try source.info(Cancellation()).validator)
      var reader = try BlobSlice(source, validator: validator).open(Cancellation())
      var read = try readNext(reader, 10_000)
      try event.happen(file)
      let error = failure { () throws(BlobError) in
        if isReopened {
          reader = try BlobSlice(source, start: Int64(read.count), validator: validator).open(Cancellation())
        }
        while case let more = try readNext(reader, 7000), !more.isEmpty { read += more }
      }
      if event.code == nil || error == nil {
        #expect(error == nil && event.code == nil, "\(error?.message ?? "no error")")
        let isWhole = read == bytes
        #expect(isWhole)
      } else {
        // Between two readers, a deleted file does not exist, and a truncated one has another length.
        let codes: [BlobError.Code] = isReopened ? [.changed, .notFound] : [event.code!]
        #expect(codes.contains(error!.code), "\(error!.message)")
        #expect(read.count < Self.length, "the last byte must not be handed over")
      }
    }
  }

  @Test func aFileThatWasMovedBeforeItIsOpenedIsAskedFor() throws {
    let file = try TemporaryFile(bytes)
    var status = stat()
    try check(file.path.withCString { stat($0, &status) } == 0)
    let found = FileStamp(status, at: file.path)
    let moved = try file.rename()
    let source = OpenFileSource(file.path, found: found) { _ in moved }
    #expect(try source.readAll() == bytes)
    // Another file now has the old name, and the source must open the original one.
    let other = try TemporaryFile.lasting([9])
    try check(other.withCString { other in file.path.withCString { Platform.rename(other, $0) } } == 0)
    #expect(try OpenFileSource(file.path, found: found) { _ in moved }.readAll() == bytes)
    #expect(try OpenFileSource(file.path, found: found) { _ in file.path }.readAll() == [9])
    #expect(try OpenFileSource(file.path, found: found) { _ in nil }.readAll() == [9])
    try check(file.path.withCString { unlink($0) } == 0)
    let error = failure { () throws(BlobError) in
      try OpenFileSource(file.path, found: found) { _ in nil }.info(Cancellation())
    }
    #expect(error?.code == .notFound)
  }

  /// Hundreds of open files share one inotify queue, and events of one must not affect another.
  @Test func manyAreHeldAtOnce() throws {
    let bytes = [UInt8](repeating: 1, count: 70_000)
    let files = try (0..<300).map { _ in try TemporaryFile(bytes) }
    let sources = files.map { OpenFileSource($0.path) }
    let readers = try sources.map { try $0.open(at: 0, Cancellation()) }
    for (index, file) in files.enumerated() {
      if index % 3 == 0 { try file.rename() }
      if index % 3 == 1 { try keepTime(of: file) { try file.overwrite([4]) } }
    }
    for (index, reader) in readers.enumerated() {
      #expect((failure { () throws(BlobError) in try reader.finish() }?.code == .changed) == (index % 3 == 1))
    }
  }
}

/// Runs `body` and then restores the file's modification time, as some programs do that write into photos.
private func keepTime(of file: TemporaryFile, _ body: () throws -> Void) throws {
  var status = stat()
  try check(file.path.withCString { stat($0, &status) } == 0)
  try body()
  try file.setModified(FileStamp(status).modified)
}

private func write(throughMappingOf descriptor: Int32, isKept: Bool) throws {
  let memory = mmap(nil, 100_000, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
  try check(memory != MAP_FAILED)
  memory!.storeBytes(of: 77, toByteOffset: 99_000, as: UInt8.self)
  if !isKept { munmap(memory, 100_000) }
}

extension TemporaryFile {
  /// Returns the new name, which the file keeps until the process ends.
  @discardableResult
  fileprivate func rename() throws -> BytePath {
    let other = BytePath(path.bytes + Array("-renamed".utf8))
    try check(path.withCString { old in other.withCString { Platform.rename(old, $0) } } == 0)
    return other
  }

  fileprivate func touch(_ body: (Int32) throws -> Void) throws {
    try keepTime(of: self) {
      let descriptor = path.withCString { open($0, O_RDWR) }
      try body(descriptor)
      close(descriptor)
    }
  }

  /// Makes the file old enough that no open must wait.
  fileprivate func settle() throws { _ = try source.info() }
}
