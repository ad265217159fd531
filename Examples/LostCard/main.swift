// Reads a card that is pulled out and put back: the stream continues at the same byte, and fails if the card is another
// one.
//   LostCardExample
import BlobStreams
import Blobs
import Foundation

let film = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

/// Reads the whole stream and describes the result.
func copy(_ card: Card) -> String {
  let stream = BlobInputStream(CardSource(card))
  stream.open()
  var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 10_000))
  while true {
    let count = stream.read(&buffer, maxLength: buffer.count)
    if count > 0 { bytes += buffer[..<count] }
    if count == 0 { return bytes == film ? "all \(bytes.count) bytes, in order" : "other bytes" }
    // An error must have a description.
    if count < 0 { return "\(bytes.count) bytes, then: \(stream.streamError!.localizedDescription)" }
  }
}

print("pulled out twice:      ", copy(Card(film, pulledOutAt: [70_000, 210_000])))
print("never put back:        ", copy(Card(film, pulledOutAt: [70_000], isPutBack: false)))
print("another card put back: ", copy(Card(film, pulledOutAt: [70_000], isSwapped: true)))
