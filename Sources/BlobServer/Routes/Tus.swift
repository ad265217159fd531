import BlobHTTP
import Blobs

/// Constants and parsing of tus 1.0.
enum Tus {
  static let version = "1.0.0"
  /// `joins`: whether the store joins parts.
  static func extensions(joins: Bool) -> String {
    "creation,creation-with-upload,creation-defer-length,termination,expiration,checksum,checksum-trailer"
      + (joins ? ",concatenation,concatenation-unfinished" : "")
  }
  static let contentType = "application/offset+octet-stream"

  /// A non-negative decimal number below 2^63, without sign or space. nil if the field is missing; throws 400 if it is
  /// invalid.
  static func number(_ headers: HTTPHeaders, _ name: String) throws(ServerError) -> Int64? {
    guard let text = headers[name] else { return nil }
    guard let number = Int64(text), text.utf8.allSatisfy({ (48...57).contains($0) }) else {
      throw ServerError(400, "\(name) must be a decimal number below 2^63")
    }
    return number
  }

  /// Values by name. Names are compared as bytes, so names that only look alike are different.
  struct Metadata {
    fileprivate var values: [[UInt8]: [UInt8]] = [:]
    subscript(name: String) -> [UInt8]? { values[Array(name.utf8)] }
  }

  /// Parses `Upload-Metadata`: names and base64 values. tus 1.0 §Creation.
  static func metadata(_ text: String) throws(ServerError) -> Metadata {
    if text.utf8.count > 16 << 10 { throw ServerError(431, "Upload-Metadata is longer than 16 KiB") }
    var metadata = Metadata()
    for pair in text.utf8.split(separator: UInt8(ascii: ",")) {
      let words = Substring(pair).trimmed.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
      guard let key = words.first, !key.isEmpty, words.count <= 2,
        let value = Base64.decode(words.count == 2 ? Substring(words[1]) : "")
      else { throw ServerError(400, "Upload-Metadata must be pairs of a name and a base64 value") }
      if metadata.values.updateValue(value, forKey: Array(key)) != nil {
        throw ServerError(400, "Upload-Metadata names '\(Substring(key).prefix(100))' twice")
      }
    }
    return metadata
  }
}
