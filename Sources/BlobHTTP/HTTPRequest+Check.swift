import Blobs

extension HTTPRequest {
  /// Why this request cannot be sent; nil if it can. Field values are not shown, because they may be secrets.
  package func problem(with body: BlobSlice?) -> TransportError? {
    let what: String? =
      if !method.isToken {
        "the method is no HTTP token"
      } else if method == "HEAD" && body != nil {
        "HEAD takes no body"
      } else {
        problem(in: headers, body)
      }
    guard let what else { return nil }
    return TransportError(.badRequest, "\(method.isToken ? method : "request") \(url): \(what)")
  }

  /// Why a field of a request or a form part is invalid; nil if it is valid.
  static func problem(_ name: String, _ value: String) -> String? {
    if !name.isToken { return "a header's name is no HTTP token" }
    if value.anyByte({ $0 == 0 || $0 == 10 || $0 == 13 }) {
      return "the value of \(name) contains a line break or NUL"
    }
    return nil
  }

  private func problem(in headers: HTTPHeaders, _ body: BlobSlice?) -> String? {
    for (name, value) in headers.fields { if let found = problem(name, value, body) { return found } }
    return nil
  }

  private func problem(_ name: String, _ value: String, _ body: BlobSlice?) -> String? {
    if let problem = Self.problem(name, value) { return problem }
    if name.isSameField("Transfer-Encoding") || name.isSameField("Expect") {
      return "\(name) is the transport's to set"
    }
    if name.isSameField("Content-Length"), let length = body == nil ? 0 : body?.length, Int64(value) != length {
      return "Content-Length differs from the body's \(length) bytes"
    }
    return nil
  }
}

extension HTTPRequest {
  /// The method changes nothing on the server, so an interrupted request leaves nothing to finish. RFC 9110 §9.2.1, RFC
  /// 4918 §9.1.
  package var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "PROPFIND"].contains(method) }

  /// Sending the request twice has the same effect as sending it once. RFC 9110 §9.2.2.
  package var isIdempotent: Bool { isSafe || method == "PUT" || method == "DELETE" }
}

extension String {
  /// A token is a non-empty sequence of token bytes. RFC 9110 §5.6.2.
  fileprivate var isToken: Bool { !isEmpty && !anyByte { !$0.isTokenByte } }

  /// Whether `found` is true for a byte of the UTF-8 text. Works on contiguous storage: every field of every request is
  /// searched, and an iterator over `utf8` takes several times as many instructions.
  fileprivate func anyByte(_ found: (UInt8) -> Bool) -> Bool {
    let answer = utf8.withContiguousStorageIfAvailable { bytes in
      for byte in bytes where found(byte) { return true }
      return false
    }
    return answer ?? utf8.contains(where: found)
  }
}

extension UInt8 {
  /// A byte of a token, such as a field name. RFC 9110 §5.6.2.
  var isTokenByte: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    // ! # $ % & ' * + - . ^ _ ` | ~
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}
