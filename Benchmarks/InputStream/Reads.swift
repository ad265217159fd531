import BlobStreams
import BlobTesting
import Blobs
import Foundation

/// What a synchronous read costs, in CPU time of its thread: nothing waits here, and neighbours on the machine do not show.
enum Reads {
  /// The median of the ratios within a round, in which each goes first in turn.
  static func ratioToPread(_ path: String, upTo size: Int, rounds: Int) throws -> Double {
    let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
    defer { buffer.deallocate() }
    let bytes = try plain(path, buffer, size).bytes
    var ratios: [Double] = []
    for round in 0..<max(rounds, 3) {
      var seconds = [0.0, 0.0]
      for contender in round % 2 == 0 ? [0, 1] : [1, 0] {
        let run = try contender == 0 ? plain(path, buffer, size) : streamed(path, buffer, size)
        guard run.bytes == bytes else { fatalError("\(run.bytes) of \(bytes) bytes were read") }
        seconds[contender] = run.seconds
      }
      ratios.append(seconds[0] / seconds[1])
    }
    return ratios.sorted()[ratios.count / 2]
  }

  private static func plain(
    _ path: String, _ buffer: UnsafeMutablePointer<UInt8>, _ size: Int
  ) throws -> (bytes: Int, seconds: Double) {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    guard file >= 0 else { throw POSIXError(.ENOENT) }
    return timed {
      var offset = 0
      while true {
        let count = pread(file, buffer, size, off_t(offset))
        if count <= 0 { return offset }
        offset += count
      }
    }
  }

  private static func streamed(
    _ path: String, _ buffer: UnsafeMutablePointer<UInt8>, _ size: Int
  ) throws -> (bytes: Int, seconds: Double) {
    let stream = BlobInputStream(FileSource(BytePath(path)))
    stream.open()
    defer { stream.close() }
    return timed { readAll(stream, buffer, size) }
  }

  private static func readAll(_ stream: InputStream, _ buffer: UnsafeMutablePointer<UInt8>, _ size: Int) -> Int {
    var bytes = 0
    while true {
      let count = stream.read(buffer, maxLength: size)
      if count <= 0 { return bytes }
      bytes += count
    }
  }

  /// Reads a second; the best round.
  static func singleBytes(rounds: Int) -> Double {
    let length = 30_000_000
    let source = PatternSource(length: Int64(length), preferredRead: 1)
    var best = 0.0
    for _ in 0..<rounds {
      let stream = BlobInputStream(source)
      stream.open()
      var byte: UInt8 = 0
      let run = timed { readAll(stream, &byte, 1) }
      guard run.bytes == length else { fatalError("\(run.bytes) of \(length) bytes were read") }
      best = max(best, Double(length) / run.seconds)
    }
    return best
  }

  private static func timed(_ work: () -> Int) -> (bytes: Int, seconds: Double) {
    let start = threadSeconds()
    let bytes = work()
    return (bytes, threadSeconds() - start)
  }

  private static func threadSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
