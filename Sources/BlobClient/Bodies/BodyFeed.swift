#if os(Linux)
  import BlobHTTP
  import Blobs

  /// Where the bytes of a body come from, as they are sent.
  protocol BodyFeed: AnyObject {
    /// Whether something of the source is used up.
    var hasBegun: Bool { get }
    /// They will be wanted soon.
    func begin()
    /// What comes next, at least one byte, which stays where it is until it is released. Not asked for past the last byte.
    /// Blocks where the source does.
    func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer
    /// The first `count` of these are done with.
    func release(_ count: Int)
    /// All of it was released.
    var isAtEnd: Bool { get }
    /// Bytes of the body among the first `count` bytes of the feed, which were released.
    func content(upTo count: Int64) -> Int64
  }

  /// Reads when more is wanted, into the worker's buffer.
  final class ReadFeed: BodyFeed {
    var hasBegun: Bool { read > 0 }

    private let reader: any BlobReader
    private let length: Int64
    private let buffer: UnsafeMutableRawBufferPointer
    private var read: Int64 = 0
    /// What is left of the buffer.
    private var left = 0..<0

    init(_ reader: any BlobReader, length: Int64, _ buffer: UnsafeMutableRawBufferPointer) {
      self.reader = reader
      self.length = length
      self.buffer = buffer
    }

    func begin() {}

    func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
      if left.isEmpty {
        let owed = Int(clamping: length - read)
        let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(owed)))
        if count == 0 { throw BlobError(.truncated, "the source ended at byte \(read) of \(length)") }
        read += Int64(count)
        left = 0..<count
      }
      return UnsafeRawBufferPointer(rebasing: buffer[left])
    }

    func release(_ count: Int) { left = left.lowerBound + count..<left.upperBound }

    var isAtEnd: Bool { read == length && left.isEmpty }

    func content(upTo count: Int64) -> Int64 { count }
  }

  /// Has another thread read before more is wanted, and gives out the very memory that it reads into.
  final class AheadFeed: BodyFeed {
    var hasBegun: Bool { reader == nil }

    /// nil: it is the other thread's.
    private var reader: (any BlobReader)?
    private let length: Int64
    private let piece: Int
    private let ring: AheadRing
    private var given: Int64 = 0

    /// `freed` is called once its memory is, which is `pieces` times `piece` bytes.
    init(_ reader: any BlobReader, length: Int64, piece: Int, freed: @escaping @Sendable () -> Void) {
      self.reader = reader
      self.length = length
      self.piece = piece
      ring = AheadRing(freed: freed)
    }

    deinit { ring.leave() }

    func begin() {
      guard let reader = reader.take() else { return }
      (reader as? any AheadReader)?.willBeReadAhead()
      ring.read(reader, at: 0, Self.pieces * piece, piece: piece)
    }

    func next(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
      let bytes = try cancel.whileWaiting(wakeUp: { [ring] in ring.wake() }) { () throws(BlobError) in
        try ring.next(piece, cancel)
      }
      if bytes.isEmpty { throw BlobError(.truncated, "the source ended at byte \(given) of \(length)") }
      return UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(clamping: length - given)))
    }

    func release(_ count: Int) {
      given += Int64(count)
      ring.release(count)
    }

    var isAtEnd: Bool { given == length }

    func content(upTo count: Int64) -> Int64 { count }

    /// One that is read into and one that is sent. With more the thread that reads keeps a processor that is needed more
    /// by who sends, or receives.
    static let pieces = 2
  }
#endif
