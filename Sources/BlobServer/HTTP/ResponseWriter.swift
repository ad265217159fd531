import BlobHTTP
import Blobs

/// Sends responses on one connection, as fast as the socket accepts them: a header section with the body bytes that are
/// in memory, followed by bytes of a file, which are not copied if the system supports it.
struct ResponseWriter {
  enum Outcome { case done, blocked, broken }

  private let stream: ClientStream
  /// Bytes of header sections and of in-memory bodies that the socket has not accepted yet.
  private var text: ArraySlice<UInt8> = []
  private var file: (item: OpenItem, rest: Range<Int64>)?
  /// The number of bytes that the socket has accepted.
  private(set) var sent: Int64 = 0
  /// The number of bytes that the socket will have accepted after those in memory.
  var end: Int64 { sent + Int64(text.count) }

  /// After this many bytes of a file, other connections of the event loop get their turn.
  private static let mostAtOnce: Int64 = 8 << 20

  init(_ stream: ClientStream) { self.stream = stream }

  var isEmpty: Bool { text.isEmpty && file == nil }

  mutating func add(_ bytes: [UInt8], file: (OpenItem, Range<Int64>)? = nil) {
    if text.isEmpty { text = bytes[...] } else { text += bytes }
    if let file, !file.1.isEmpty { self.file = file }
  }

  /// `room` is a buffer for file bytes that the system cannot send directly.
  mutating func flush(through room: UnsafeMutableRawBufferPointer) -> Outcome {
    while !text.isEmpty {
      let sent = text.withUnsafeBytes { stream.send($0, hasMore: file != nil) }
      guard let sent else { return .broken }
      if sent == 0 { return .blocked }
      self.sent += Int64(sent)
      text = text.dropFirst(sent)
    }
    text = []
    guard case (let item, var rest)? = file else { return .done }
    let pause = rest.lowerBound + Self.mostAtOnce
    while !rest.isEmpty, rest.lowerBound < pause {
      let count = Int(min(Int64(rest.count), Self.mostAtOnce))
      // If the file was truncated, the promised length cannot be delivered.
      guard let sent = stream.send(item.file, at: rest.lowerBound, count, through: room) else { return .broken }
      if sent == 0 { break }
      self.sent += Int64(sent)
      rest = rest.lowerBound + Int64(sent)..<rest.upperBound
    }
    file = rest.isEmpty ? nil : (item, rest)
    return rest.isEmpty ? .done : .blocked
  }
}
