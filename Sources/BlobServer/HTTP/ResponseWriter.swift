import BlobHTTP
import Blobs

/// Sends responses on one connection, as fast as the socket accepts them: a header section with the body bytes that are
/// in memory, followed by bytes of files. The bytes of a single file are sent without a copy if the system supports it.
struct ResponseWriter {
  enum Outcome {
    case done, blocked, broken
    /// The next bytes have not come from another computer yet.
    case starved
  }
  private enum Source {
    case file(OpenItem, rest: Range<Int64>)
    case archive(ArchiveReader)
    case feed(ContentFeed)
  }

  private let stream: ClientStream
  /// Bytes that are in memory, and that the socket has not accepted yet.
  private var text: ArraySlice<UInt8> = []
  /// The file or archive that follows them.
  private var source: Source?
  /// The number of bytes that the socket has accepted.
  private(set) var sent: Int64 = 0
  /// The number of bytes that the socket will have accepted after those in memory.
  var end: Int64 { sent + Int64(text.count) }

  /// After this many bytes of files, other connections of the event loop get their turn.
  private static let mostAtOnce: Int64 = 8 << 20

  init(_ stream: ClientStream) { self.stream = stream }

  var isEmpty: Bool { text.isEmpty && source == nil }

  /// `body`: nil or in memory, so that it is a part of `bytes`, or what follows them.
  mutating func add(_ bytes: [UInt8], then body: Reply.Body? = nil) {
    if text.isEmpty { text = bytes[...] } else { text += bytes }
    switch body {
    case .file(let item, let range) where !range.isEmpty:
      if case .remote(let content) = item.content {
        source = .feed(content.start(range))
      } else {
        source = .file(item, rest: range)
      }
    case .archive(let part) where !part.range.isEmpty: source = .archive(ArchiveReader(part))
    case .file, .archive, .bytes, nil: break
    }
  }

  /// Call when nothing more is sent.
  func stop() { if case .feed(let feed) = source { feed.stop() } }

  /// `room` is a buffer for file bytes that the system cannot send directly. `wake` is called after `.starved`, once there
  /// are bytes again.
  mutating func flush(
    through room: UnsafeMutableRawBufferPointer, orCall wake: @escaping @Sendable () -> Void = {}
  ) -> Outcome {
    while true {
      let outcome = flushOnce(through: room)
      guard case .done = outcome, case .feed(let feed) = source else { return outcome }
      switch feed.next(orCall: wake) {
      case .bytes(let bytes): text = bytes[...]
      case .nothing: return .starved
      case .end: source = nil
      // The promised length cannot be delivered.
      case .failed: return .broken
      }
    }
  }

  private mutating func flushOnce(through room: UnsafeMutableRawBufferPointer) -> Outcome {
    while !text.isEmpty {
      let sent = text.withUnsafeBytes { stream.send($0, hasMore: source != nil) }
      guard let sent else { return .broken }
      if sent == 0 { return .blocked }
      self.sent += Int64(sent)
      text = text.dropFirst(sent)
    }
    text = []
    switch source {
    case .file(let item, let rest): return send(item, rest, through: room)
    case .archive(let reader): return send(reader, through: room)
    case .feed, nil: return .done
    }
  }

  private mutating func send(
    _ item: OpenItem, _ range: Range<Int64>, through room: UnsafeMutableRawBufferPointer
  ) -> Outcome {
    var rest = range
    let pause = rest.lowerBound.addingClamped(Self.mostAtOnce)
    while !rest.isEmpty, rest.lowerBound < pause {
      let count = Int(min(Int64(rest.count), Self.mostAtOnce))
      // If the file was truncated, the promised length cannot be delivered.
      guard let file = item.file, let sent = stream.send(file, at: rest.lowerBound, count, through: room) else {
        return .broken
      }
      if sent == 0 { break }
      self.sent += Int64(sent)
      rest = rest.lowerBound + Int64(sent)..<rest.upperBound
    }
    source = rest.isEmpty ? nil : .file(item, rest: rest)
    return rest.isEmpty ? .done : .blocked
  }

  private mutating func send(_ archive: ArchiveReader, through room: UnsafeMutableRawBufferPointer) -> Outcome {
    let pause = sent + Self.mostAtOnce
    while sent < pause {
      // If a file was changed, the promised bytes cannot be delivered.
      guard let count = archive.read(into: room) else { return .broken }
      if count == 0 {
        source = nil
        return .done
      }
      guard let sent = stream.send(UnsafeRawBufferPointer(rebasing: room[..<count]), hasMore: !archive.isOver)
      else { return .broken }
      self.sent += Int64(sent)
      if sent < count {
        text = Array(room[sent..<count])[...]
        break
      }
    }
    return .blocked
  }
}
