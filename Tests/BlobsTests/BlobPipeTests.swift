import BlobTesting
import TestSupport
import Blobs
import Testing

struct BlobPipeTests {
  @Test func pipeHoldsNoMoreThanItsCapacity() throws {
    let pipe = BlobPipe(capacity: 10)
    let source = PipeSource(pipe)
    let written = Counter()
    let writer = Background {
      for number in UInt8(0)..<30 {
        guard failure({ () throws(BlobError) in try write([number], to: pipe) }) == nil else { return false }
        written.add()
      }
      pipe.finish()
      return true
    }
    for _ in 0..<200 where written.count < 10 { _ = writer.value(within: .milliseconds(50)) }
    #expect(writer.value(within: .milliseconds(50)) == nil)
    #expect(written.count == 10)
    #expect(try source.readAll() == Array(0..<30))
    #expect(writer.value() == true)
  }

  @Test func manyMegabytesGoThroughALittleMemory() throws {
    let pattern = PatternSource(length: 20_000_000, seed: 4)
    let reader = try pipe(pattern, capacity: 4099).open(at: 0, Cancellation())
    var offset: Int64 = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 5000, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = try reader.read(into: buffer), count > 0 {
      try #require(pattern.verify(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), at: offset) == nil)
      offset += Int64(count)
    }
    #expect(offset == pattern.length)
  }

  @Test func failureComesAfterTheBytes() throws {
    let pipe = BlobPipe()
    let reader = try PipeSource(pipe).open(at: 0, Cancellation())
    try write([1, 2, 3], to: pipe)
    pipe.fail(BlobError(.io, "the camera was switched off"))
    pipe.finish()
    #expect(try readNext(reader, 3) == [1, 2, 3])
    for _ in 0..<2 {
      let error = failure { () throws(BlobError) in try readNext(reader, 1) }
      #expect(error?.message == "the camera was switched off")
    }
  }

  @Test func nothingFailsAfterTheEnd() throws {
    let pipe = BlobPipe()
    pipe.finish()
    pipe.fail(BlobError(.io, "too late"))
    #expect(try PipeSource(pipe).readAll() == [])
  }

  @Test func writerThatGoesAwayIsAnErrorNotTheEnd() throws {
    let source: PipeSource
    do {
      let pipe = BlobPipe()
      source = PipeSource(pipe)
      try write([1], to: pipe)
    }
    let error = failure { () throws(BlobError) in try source.readAll() }
    #expect(error?.code == .io)
    #expect(error?.message.contains("went away") == true)
  }

  @Test func droppingTheReadingEndWakesTheWriter() throws {
    let pipe = BlobPipe(capacity: 1)
    var source: PipeSource? = PipeSource(pipe)
    let writer = Background { failure { () throws(BlobError) in try write([1, 2, 3], to: pipe) } }
    var reader = try source?.open(at: 0, Cancellation())
    source = nil
    #expect(try readNext(try #require(reader), 1) == [1])
    #expect(writer.value(within: .milliseconds(30)) == nil, "a reader is left")
    reader = nil
    let error = try #require(writer.value())
    #expect(error?.code == .io)
    #expect(error?.message == "write to a pipe: its reader stopped at byte 1")
  }

  @Test func cancellingWakesBothEnds() throws {
    let full = BlobPipe(capacity: 1)
    let empty = BlobPipe()
    let (unread, silent) = (PipeSource(full), PipeSource(empty))
    let cancel = Cancellation()
    let writer = Background { failure { () throws(BlobError) in try write([1, 2], to: full, cancel) }?.code }
    let reader = Background { failure { () throws(BlobError) in try readAll(try silent.open(at: 0, cancel)) }?.code }
    #expect(writer.value(within: .milliseconds(30)) == nil && reader.value(within: .zero) == nil)
    cancel.cancel()
    #expect(writer.value() == .cancelled)
    #expect(reader.value() == .cancelled)
    withExtendedLifetime((unread, full, empty)) {}
  }

  @Test func failureFromAnotherThreadWakesTheWriter() throws {
    let pipe = BlobPipe(capacity: 1)
    let source = PipeSource(pipe)
    let writer = Background { failure { () throws(BlobError) in try write([1, 2], to: pipe) } }
    #expect(writer.value(within: .milliseconds(30)) == nil)
    pipe.fail(BlobError(.io, "the camera was switched off"))
    #expect(writer.value()??.message == "the camera was switched off")
    withExtendedLifetime(source) {}
  }

  @Test func promisedLengthIsKept() throws {
    func end(_ bytes: [UInt8], promised: Int64) -> BlobError? {
      let pipe = BlobPipe()
      return failure { () throws(BlobError) in
        let source = PipeSource(pipe, length: promised)
        try write(bytes, to: pipe)
        pipe.finish()
        _ = try BlobSlice(source).readAll(upTo: 3)
      }
    }
    #expect(end([1, 2, 3], promised: 3) == nil)
    #expect(end([], promised: 0) == nil)
    #expect(end([1, 2], promised: 3)?.code == .truncated)
    #expect(end([1, 2, 3, 4], promised: 3)?.code == .changed)
    #expect(end([1], promised: 0)?.code == .changed)
  }

  @Test func lastPromisedByteWaitsForTheWritersWord() throws {
    let pipe = BlobPipe()
    let source = PipeSource(pipe, length: 2)
    try write([1, 2], to: pipe)
    let reader = Background { failure { () throws(BlobError) in try BlobSlice(source).readAll() } }
    #expect(reader.value(within: .milliseconds(30)) == nil)
    pipe.fail(BlobError(.io, "the last frame was broken"))
    #expect(reader.value()??.message == "the last frame was broken")
  }

  @Test func pipeIsOpenedOnlyWhereItIs() throws {
    let pipe = BlobPipe()
    let source = PipeSource(pipe)
    try write([1, 2, 3], to: pipe)
    pipe.finish()
    var reader: (any BlobReader)? = try source.open(at: 0, Cancellation())
    #expect(failure { () throws(BlobError) in try source.open(at: 0, Cancellation()) }?.code == .unsupported)
    _ = try readNext(try #require(reader), 2)
    reader = nil
    #expect(failure { () throws(BlobError) in try source.open(at: 1, Cancellation()) }?.code == .outOfRange)
    #expect(try source.readAll(at: 2) == [3])
    #expect(try source.readAll(at: 3) == [])
  }
}

private func write(_ bytes: [UInt8], to pipe: BlobPipe, _ cancel: Cancellation? = nil) throws(BlobError) {
  try bytes.withUnsafeBufferPointer { bytes throws(BlobError) in try pipe.write(UnsafeRawBufferPointer(bytes), cancel) }
}
