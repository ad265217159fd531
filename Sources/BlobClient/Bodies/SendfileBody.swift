import BlobHTTP
import Blobs
import Platform

/// A body that `sendfile` copies from its file to a plain socket inside the kernel, without passing through the
/// process. The parts of a form around the file are read normally.
///
/// `sendfile` references the pages of the file: a program that writes to the file changes bytes that are still in the
/// socket's queue. Therefore the last bytes of the file, more than the queues of both ends can hold, are read into
/// memory and sent from there. Once the connection has accepted them, no page of the file is in a queue any more, and
/// the source is asked whether it still has the same version before the very last byte of the file is sent.
final class SendfileBody: RequestBody {
  private var socket: Int32 = -1
  let length: Int64
  private(set) var sent: Int64 = 0
  var isComplete: Bool { sent == length }
  var hasBegun: Bool { sent > 0 || !pending.isEmpty }
  var awaitsSource: Bool { pending.isEmpty }

  private let slice: BlobSlice
  private let region: FileRegion
  private var reader: any BlobReader
  /// Body offset at which sending with `sendfile` ends and copying begins.
  private var lentUpTo: Int64
  private var isLent = false
  private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// The part of the buffer that the connection has not accepted yet.
  private var pending = 0..<0

  /// nil if the source has no file region, or if the region is too small. `reader` was just opened by `slice`.
  init?(_ slice: BlobSlice, _ reader: any BlobReader, tail: Int64 = SendfileBody.queues) {
    guard let length = reader.info.length, length >= tail + Self.least, reader.info.validator != nil,
      let region = reader.fileRegion()
    else { return nil }
    let lent = region.length ?? length - region.start
    if lent < tail + Self.least { return nil }
    self.length = length
    self.slice = slice
    self.region = region
    self.reader = reader
    lentUpTo = region.start + lent - tail
  }

  deinit { buffer.deallocate() }

  func begin(on connection: Connection) { socket = connection.socket }

  func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome {
    if sent < region.start { return try copy(upTo: region.start) }
    if sent < lentUpTo { return try lend() }
    if !isLent { try openRest(cancel) }
    return try copy(upTo: length)
  }

  private func lend() throws(BlobError) -> SendOutcome {
    let count = Socket.sendFile(
      region.descriptor, at: region.offset + sent - region.start, Int(min(lentUpTo - sent, Self.most)), on: socket)
    if count > 0 {
      sent += Int64(count)
      return .moved
    }
    switch errno {
    case _ where count == 0: break
    case EAGAIN, EINTR: return .blocked
    case EPIPE, ECONNRESET, ENOTCONN, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH: return .broken
    // The file cannot be sent with `sendfile`, or reading it failed. The following read reports a failure.
    default: break
    }
    lentUpTo = sent
    return .moved
  }

  /// Opens the rest as a separate slice, with the version that was sent so far.
  private func openRest(_ cancel: Cancellation) throws(BlobError) {
    try reader.finish()
    let version = reader.info.validator
    let rest = BlobSlice(
      slice.source, start: slice.start + sent, length: slice.length.map { $0 - sent }, validator: version)
    reader = try rest.open(cancel)
    if reader.info.length != length - sent {
      throw BlobError(.changed, "the source went from \(length) to \(sent + (reader.info.length ?? 0)) bytes")
    }
    isLent = true
  }

  private func copy(upTo end: Int64) throws(BlobError) -> SendOutcome {
    if pending.isEmpty {
      if buffer.isEmpty { buffer = .allocate(byteCount: Self.bufferSize, alignment: 4096) }
      let most = Int(clamping: end - sent)
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(most)))
      if count == 0 { throw BlobError(.truncated, "the source ended at byte \(sent) of \(length)") }
      pending = 0..<count
    }
    let count = Platform.send(socket, buffer.baseAddress! + pending.lowerBound, pending.count, Socket.now)
    if count < 0 { return errno == EAGAIN || errno == EINTR ? .blocked : .broken }
    pending = pending.lowerBound + count..<pending.upperBound
    sent += Int64(count)
    return .moved
  }

  /// Smaller regions are not worth opening the file a second time.
  static let least: Int64 = 4 << 20
  /// Limit for one call, so that cancellation is noticed and progress is reported.
  private static let most: Int64 = 4 << 20
  private static let bufferSize = 256 << 10

  /// More bytes than the sender's and the receiver's queues hold together on one machine.
  static let queues: Int64 = {
    #if os(Linux)
      let limits = ["tcp_wmem", "tcp_rmem"].map { (name: String) -> Int64 in
        guard let file = fopen("/proc/sys/net/ipv4/\(name)", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        let count = fread(&line, 1, line.count - 1, file)
        let text = String(decoding: line.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int64($0) } ?? 0
      }
      let both = limits[0] + limits[1]
    #else
      var limit: Int32 = 0
      var size = MemoryLayout<Int32>.size
      let both = sysctlbyname("kern.ipc.maxsockbuf", &limit, &size, nil, 0) == 0 ? 2 * Int64(limit) : 0
    #endif
    return max(16 << 20, 2 * both)
  }()
}
