import BlobCrypto
import Blobs
import Platform

/// The lists of one history, as `ascmhl_chain.xml` has them.
package struct HashListChain: Sendable {
  package struct Generation: Sendable, Equatable {
    /// From 1 on.
    package var number: Int
    /// The name of the list's file.
    package var name: BytePath
    /// The C4 of its bytes.
    package var c4: String

    package init(number: Int, name: BytePath, c4: String) { (self.number, self.name, self.c4) = (number, name, c4) }
  }

  /// In the order of their numbers.
  package var generations: [Generation]

  package init(generations: [Generation] = []) { self.generations = generations }

  /// The folder beside the files, and the name of the chain in it.
  package static let folder: BytePath = "ascmhl"
  package static let name: BytePath = "ascmhl_chain.xml"

  /// The number of the next list.
  package var next: Int { (generations.last?.number ?? 0) + 1 }

  /// Whether a list has the bytes that the chain knows.
  package static func matches(_ bytes: [UInt8], _ generation: Generation) -> Bool {
    HashListFormat.c4.text(Digest.value(of: bytes, .sha512)) == generation.c4
  }

  /// The name of a list: `0001_CARD_2026-11-28_023809Z.mhl`. `seconds`: since 1970.
  package static func name(_ number: Int, of folder: BytePath, at seconds: Int64) -> BytePath {
    let digits = String(number)
    let padded = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    let name = folder.isEmpty || !folder.canBeInXML ? "folder" : folder
    return BytePath(Array("\(padded)_".utf8) + name.bytes + Array("_\(utcText(seconds, "%Y-%m-%d_%H%M%SZ")).mhl".utf8))
  }

  /// The file, in UTF-8.
  package var text: String {
    let lists = generations.map { list in
      """
        <hashlist sequencenr="\(list.number)">
          <path>\(list.name.description.escapedXML)</path>
          <c4>\(list.c4)</c4>
        </hashlist>

      """
    }
    return """
      <?xml version="1.0" encoding="UTF-8"?>
      <ascmhldirectory xmlns="urn:ASC:MHL:DIRECTORY:v2.0">
      \(lists.joined())</ascmhldirectory>

      """
  }
}

extension BytePath {
  /// Whether XML can have the path: it is UTF-8 and has only characters that XML allows. XML 1.0 §2.2.
  package var canBeInXML: Bool {
    guard let text = String(validating: bytes, as: UTF8.self) else { return false }
    return text.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20
        ? scalar.value != 0xFFFE && scalar.value != 0xFFFF : [0x09, 0x0A, 0x0D].contains(scalar.value)
    }
  }
}

/// A time in UTC, in a format of `strftime`. `seconds`: since 1970.
func utcText(_ seconds: Int64, _ format: String) -> String {
  var (moment, parts) = (time_t(clamping: seconds), tm())
  gmtime_r(&moment, &parts)
  var text = [CChar](repeating: 0, count: 64)
  _ = strftime(&text, text.count - 1, format, &parts)
  return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
}
