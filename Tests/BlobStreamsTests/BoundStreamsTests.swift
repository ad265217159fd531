import BlobStreams
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

struct BoundStreamsTests {
  @Test func manyMegabytesGoThroughALittleMemory() throws {
    let pattern = PatternSource(length: 30_000_000, seed: 4)
    let pair = open(capacity: 4099)
    SystemThread.start("producer") { produce(pattern, into: pair.output) }
    var offset: Int64 = 0
    var buffer = [UInt8](repeating: 0, count: 5000)
    while case let count = pair.input.read(&buffer, maxLength: buffer.count), count > 0 {
      let wrong = buffer.withUnsafeBytes {
        pattern.verify(UnsafeRawBufferPointer(rebasing: $0.prefix(count)), at: offset)
      }
      try #require(wrong == nil)
      offset += Int64(count)
    }
    #expect(offset == pattern.length)
    #expect(pair.input.streamStatus == .atEnd)
  }

  @Test func eachWritesAndReadsAPart() throws {
    let pair = open(capacity: 10)
    #expect(pair.output.write(Array(0..<30), maxLength: 30) == 10)
    #expect(!pair.output.hasSpaceAvailable)
    #expect(pair.input.readOnce(4) == [0, 1, 2, 3])
    #expect(pair.output.hasSpaceAvailable)
    #expect(pair.output.write(Array(10..<30), maxLength: 20) == 4)
    #expect(pair.input.readOnce(100) == [4, 5, 6, 7, 8, 9], "up to where the memory begins again")
    #expect(pair.input.readOnce(100) == [10, 11, 12, 13])
  }

  @Test func closingTheOutputIsTheEndAfterWhatIsLeft() throws {
    let pair = open()
    #expect(pair.output.write([1, 2, 3], maxLength: 3) == 3)
    pair.output.close()
    #expect(pair.output.streamStatus == .closed)
    #expect(pair.output.write([4], maxLength: 1) == -1)
    #expect(pair.input.hasBytesAvailable)
    #expect(pair.input.readOnce(10) == [1, 2, 3])
    #expect(!pair.input.hasBytesAvailable)
    for _ in 0..<2 { #expect(pair.input.readOnce(10) == []) }
    #expect(pair.input.streamStatus == .atEnd && pair.input.streamError == nil)
  }

  @Test func errorOfTheWriterComesAfterItsBytes() throws {
    let pair = open()
    _ = pair.output.write([1, 2, 3], maxLength: 3)
    pair.output.fail(BlobError(.io, "the camera was switched off", errno: 19))
    pair.output.close()
    #expect(pair.input.readOnce(10) == [1, 2, 3])
    for _ in 0..<2 { #expect(pair.input.readOnce(10) == nil) }
    #expect(pair.input.streamStatus == .error)
    #expect(pair.input.hasBytesAvailable, "whoever asks reads, and meets the error")
    #expect(BlobError(underlying: pair.input.streamError)?.message == "the camera was switched off")
    #expect((pair.input.streamError as NSError?)?.code == 19)
  }

  @Test func closingTheInputWakesTheWriter() throws {
    for error in [nil, BlobError(.cancelled, "the upload was given up")] {
      let pair = open(capacity: 1)
      let writer = Background { failure { () throws(BlobError) in try pair.output.writeAll([1, 2, 3]) } }
      #expect(writer.value(within: .milliseconds(30)) == nil)
      if let error { pair.input.fail(error) } else { pair.input.close() }
      let seen = try #require(writer.value())
      #expect(seen?.message == error?.message ?? "write to a pipe: its reader stopped at byte 0")
      #expect(pair.output.streamStatus == .error)
      #expect(pair.output.write([1], maxLength: 1) == -1)
    }
  }

  @Test func deallocatingEitherWakesTheOther() throws {
    var input: BoundInputStream?
    var output: BoundOutputStream?
    do {
      let pair = open(capacity: 1)
      (input, output) = (pair.input, pair.output)
    }
    nonisolated(unsafe) let reading = input!
    let reader = Background { (reading.readOnce(1), BlobError(underlying: reading.streamError)?.message) }
    #expect(reader.value(within: .milliseconds(30)) == nil)
    output = nil
    let (bytes, message) = try #require(reader.value())
    #expect(bytes == nil && message?.contains("went away") == true, "what was not closed is not complete")

    do {
      let pair = open(capacity: 1)
      (input, output) = (pair.input, pair.output)
    }
    nonisolated(unsafe) let writing = output!
    let writer = Background { failure { () throws(BlobError) in try writing.writeAll([1, 2]) }?.code }
    #expect(writer.value(within: .milliseconds(30)) == nil)
    input = nil
    #expect(writer.value() == .io)
  }

  @Test func closingFromAnotherThreadEndsAWait() throws {
    let full = open(capacity: 1)
    _ = full.output.write([1], maxLength: 1)
    let writer = Background { full.output.write([2], maxLength: 1) }
    let empty = open()
    let reader = Background { empty.input.readOnce(1) == nil }
    #expect(writer.value(within: .milliseconds(30)) == nil && reader.value(within: .zero) == nil)
    full.output.close()
    empty.input.close()
    #expect(writer.value() == -1)
    #expect(reader.value() == true)
    #expect(full.input.readOnce(9) == [1] && full.input.readOnce(9) == [])
  }

  @Test func hasBytesAvailableIsFalseOnlyAtTheEndIfNoEventsAreDelivered() throws {
    let pair = BoundStreams(capacity: 10)
    #expect(!pair.input.hasBytesAvailable && !pair.output.hasSpaceAvailable)
    pair.input.open()
    pair.output.open()
    #expect(pair.input.hasBytesAvailable, "URL loading takes false for the end")
    pair.output.close()
    #expect(!pair.input.hasBytesAvailable)
  }

  @Test func bytesAreLent() throws {
    let pair = open(capacity: 10)
    var (pointer, length): (UnsafeMutablePointer<UInt8>?, Int) = (nil, 0)
    #expect(!pair.input.getBuffer(&pointer, length: &length))
    _ = pair.output.write([1, 2, 3], maxLength: 3)
    #expect(pair.input.getBuffer(&pointer, length: &length))
    #expect(Array(UnsafeBufferPointer(start: pointer, count: length)) == [1, 2, 3])
    #expect(pair.input.readOnce(10) == [1, 2, 3], "lending moves nothing")
    pair.output.fail(BlobError(.io, "broken"))
    #expect(!pair.input.getBuffer(&pointer, length: &length))
  }

  @Test func badCallsDoNothing() throws {
    let pair = BoundStreams(capacity: 10)
    var byte: UInt8 = 0
    #expect(pair.input.read(&byte, maxLength: 1) == -1 && pair.output.write([1], maxLength: 1) == -1)
    pair.input.open()
    pair.output.open()
    pair.input.open()
    for count in [0, -1, .min] {
      #expect(pair.input.read(&byte, maxLength: count) == (count == 0 ? 0 : -1))
      #expect(pair.output.write([], maxLength: count) == (count == 0 ? 0 : -1))
    }
    #expect(pair.input.property(forKey: .fileCurrentOffsetKey) == nil)
    #expect(!pair.input.setProperty(NSNumber(value: 3), forKey: .fileCurrentOffsetKey))
    #expect(!pair.output.setProperty(nil, forKey: .dataWrittenToMemoryStreamKey))
    #expect(pair.output.write([7], maxLength: 1) == 1 && pair.input.readOnce(5) == [7])
    pair.input.close()
    pair.input.open()
    #expect(pair.input.streamStatus == .closed && pair.input.readOnce(1) == nil)
    let alone = BoundOutputStream(toMemory: ())
    alone.open()
    #expect(alone.write([1], maxLength: 1) == -1 && alone.streamStatus == .error)
  }

  @Test func foundationWritesAndParsesThroughIt() throws {
    let pair = open(capacity: 7)
    let parser = Background {
      let parser = XMLParser(stream: pair.input)
      return parser.parse()
    }
    let text = "<a>" + String(repeating: "<b>words</b>", count: 5000) + "</a>"
    try pair.output.writeAll(Array(text.utf8))
    pair.output.close()
    #expect(parser.value() == true)

    // The client writes once and assumes that all bytes were accepted, so there must be room.
    let other = open(capacity: 10_000)
    _ = try JSONSerialization.writeJSONObject(["a": [1, 2, 3]], toStream: other.output, options: [])
    other.output.close()
    #expect(try JSONSerialization.jsonObject(with: other.input) as? [String: [Int]] == ["a": [1, 2, 3]])
  }
}

/// Returns a pair with both ends open.
func open(capacity: Int = 1000) -> BoundStreams {
  let pair = BoundStreams(capacity: capacity)
  pair.input.open()
  pair.output.open()
  return pair
}

/// Writes chunks of any size, like the callback of a device library.
func produce(_ pattern: PatternSource, into output: BoundOutputStream, chunk: Int = 70_001) {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk, alignment: 16)
  defer { buffer.deallocate() }
  var offset: Int64 = 0
  while offset < pattern.length {
    let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: pattern.length - offset)))
    pattern.fill(piece, at: offset)
    do { try output.writeAll(UnsafeRawBufferPointer(piece)) } catch { return }  // the reader has read enough
    offset += Int64(piece.count)
  }
  output.close()
}

extension BoundOutputStream {
  func writeAll(_ bytes: [UInt8]) throws(BlobError) {
    try bytes.withUnsafeBufferPointer { bytes throws(BlobError) in try writeAll(UnsafeRawBufferPointer(bytes)) }
  }
}
