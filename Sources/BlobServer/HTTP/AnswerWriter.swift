import BlobHTTP
import Blobs

/// Sends answers on one connection, as far as the socket takes them: a head with what is in memory, and behind it bytes of a
/// file, without a copy where the system can.
struct AnswerWriter {
  enum Outcome { case done, blocked, broken }

  private let stream: ClientStream
  /// Bytes of heads and of bodies in memory that the socket has not taken yet.
  private var text: ArraySlice<UInt8> = []
  private var file: (item: OpenItem, rest: Range<Int64>)?

  /// So many bytes of a file are sent before other connections of the loop have their turn.
  private static let mostAtOnce: Int64 = 8 << 20

  init(_ stream: ClientStream) { self.stream = stream }

  var isEmpty: Bool { text.isEmpty && file == nil }

  mutating func add(_ bytes: [UInt8], file: (OpenItem, Range<Int64>)? = nil) {
    if text.isEmpty { text = bytes[...] } else { text += bytes }
    if let file, !file.1.isEmpty { self.file = file }
  }

  /// `room`: for bytes that the system does not send by itself.
  mutating func flush(through room: UnsafeMutableRawBufferPointer) -> Outcome {
    while !text.isEmpty {
      let sent = text.withUnsafeBytes { stream.send($0, hasMore: file != nil) }
      guard let sent else { return .broken }
      if sent == 0 { return .blocked }
      text = text.dropFirst(sent)
    }
    text = []
    guard case (let item, var rest)? = file else { return .done }
    let pause = rest.lowerBound + Self.mostAtOnce
    while !rest.isEmpty, rest.lowerBound < pause {
      let count = Int(min(Int64(rest.count), Self.mostAtOnce))
      // A file that was shortened cannot make up what the head has promised.
      guard let sent = stream.send(item.file, at: rest.lowerBound, count, through: room) else { return .broken }
      if sent == 0 { break }
      rest = rest.lowerBound + Int64(sent)..<rest.upperBound
    }
    file = rest.isEmpty ? nil : (item, rest)
    return rest.isEmpty ? .done : .blocked
  }
}
