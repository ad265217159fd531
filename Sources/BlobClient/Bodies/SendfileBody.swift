#if os(Linux)
  import BlobHTTP
  import Blobs
  import Platform

  /// A body that goes from its file to a plain socket: the pages of the file are lent to the connection, and no byte of
  /// them passes through the process. What a form has around its file is read.
  ///
  /// A lent page is not a copy: who writes to the file changes what is on its way. So the file's last bytes, more than
  /// the queues of both ends can hold, are copied as they are read: once they have been taken, no lent page is on its way
  /// any more, and the source is asked whether it is still the same version before the file's very last one leaves.
  final class SendfileBody: RequestBody {
    private var socket: Int32 = -1
    let length: Int64
    private(set) var sent: Int64 = 0
    var isComplete: Bool { sent == length }
    var hasBegun: Bool { sent > 0 || !pending.isEmpty }

    private let slice: BlobSlice
    private let region: FileRegion
    private var reader: any BlobReader
    /// Where lending ends and copying begins.
    private var lentUpTo: Int64
    private var isLent = false
    private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// What the connection has not taken of the buffer.
    private var pending = 0..<0

    /// nil where there is no file to lend from, or too little of it. `reader` is one that `slice` has just opened.
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
      var offset = off_t(region.offset + sent - region.start)
      let count = sendfile(socket, region.descriptor, &offset, Int(min(lentUpTo - sent, Self.most)))
      if count > 0 {
        sent += Int64(count)
        return .moved
      }
      switch errno {
      case _ where count == 0: break
      case EAGAIN, EINTR: return .blocked
      case EPIPE, ECONNRESET, ENOTCONN, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH: return .broken
      // The file's: one of a kind that cannot be lent, or that failed. Reading it will tell.
      default: break
      }
      lentUpTo = sent
      return .moved
    }

    /// The rest is a slice of its own, of the version that was lent from.
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
      let count = Platform.send(socket, buffer.baseAddress! + pending.lowerBound, pending.count, Int32(MSG_NOSIGNAL))
      if count < 0 { return errno == EAGAIN || errno == EINTR ? .blocked : .broken }
      pending = pending.lowerBound + count..<pending.upperBound
      sent += Int64(count)
      return .moved
    }

    /// Less is not worth a second opening of the file.
    static let least: Int64 = 4 << 20
    /// For one call, so that a cancellation is seen and progress is told.
    private static let most: Int64 = 4 << 20
    private static let bufferSize = 256 << 10

    /// More than can be under way between two programs of one machine, in the queues of the sender and of the receiver.
    static let queues: Int64 = {
      let limits = ["tcp_wmem", "tcp_rmem"].map { (name: String) -> Int64 in
        guard let file = fopen("/proc/sys/net/ipv4/\(name)", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        let count = fread(&line, 1, line.count - 1, file)
        let text = String(decoding: line.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).last.flatMap { Int64($0) } ?? 0
      }
      return max(16 << 20, 2 * (limits[0] + limits[1]))
    }()
  }
#endif
