import BlobTesting
import Blobs

/// The published names of a peer and their bytes, which survive a restart.
final class PublishedNames: Sendable {
  private let files = Monitor<[BytePath: [UInt8]]>([:])

  subscript(name: BytePath) -> [UInt8]? { files.update(waking: .none) { $0[name] } }
  var all: [BytePath] { files.update(waking: .none) { Array($0.keys) } }

  enum Outcome { case new, same, replaced, taken }

  /// `overwrites` false refuses to replace other bytes.
  func publish(_ bytes: [UInt8], as name: BytePath, overwrites: Bool) -> Outcome {
    files.update { files in
      guard let old = files[name] else {
        files[name] = bytes
        return .new
      }
      if old == bytes { return .same }
      if !overwrites { return .taken }
      files[name] = bytes
      return .replaced
    }
  }

  /// Returns the removed bytes.
  @discardableResult
  func remove(_ name: BytePath) -> [UInt8]? { files.update { $0.removeValue(forKey: name) } }
}

func percentDecoded(_ text: some Sequence<UInt8>) -> [UInt8] {
  var bytes: [UInt8] = []
  var rest = Array(text)[...]
  while let byte = rest.popFirst() {
    if byte == UInt8(ascii: "%"), rest.count >= 2,
      let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
    {
      bytes.append(value)
      rest = rest.dropFirst(2)
    } else {
      bytes.append(byte)
    }
  }
  return bytes
}
