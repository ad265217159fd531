#if canImport(Glibc)
  import Blobs

  /// A body that goes through libcurl's TLS past libcurl: read from its source, encrypted, and sent in one call for each
  /// time it was read, however many records that makes.
  final class SealedBody: LaneBody {
    let length: Int64
    private(set) var sent: Int64 = 0
    private var channel: TLSChannel?
    /// Whether another connection needs a new one of these.
    var hasBegun: Bool { read > 0 }

    private let reader: any BlobReader
    /// The lane's.
    private let buffer: UnsafeMutableRawBufferPointer
    private var read: Int64 = 0
    private var sealed: Int64 = 0
    /// What is read and not encrypted.
    private var plain = 0..<0

    init(_ reader: any BlobReader, length: Int64, _ buffer: UnsafeMutableRawBufferPointer) {
      self.reader = reader
      self.length = length
      self.buffer = buffer
    }

    func begin(on wire: Wire) {
      if case .sealed(let channel) = wire { self.channel = channel }
    }

    func send(_ cancel: Cancellation) throws(BlobError) -> LaneOutcome {
      guard let channel else { return .broken }
      if channel.pending == 0 {
        if plain.isEmpty { try fill() }
        let count = channel.seal(UnsafeRawBufferPointer(rebasing: buffer[plain]))
        plain = plain.lowerBound + count..<plain.upperBound
        sealed += Int64(count)
        if count == 0 { return channel.isOpen ? .waiting : .broken }
      }
      let outcome = channel.flush()
      // A record is longer than what is in it: never more than has left.
      sent = max(sent, sealed - Int64(channel.pending))
      if sent == length { channel.giveBack() }
      return outcome
    }

    private func fill() throws(BlobError) {
      let owed = Int(clamping: length - read)
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(owed)))
      if count == 0 { throw BlobError(.truncated, "the source ended at byte \(read) of \(length)") }
      read += Int64(count)
      plain = 0..<count
    }
  }
#endif
