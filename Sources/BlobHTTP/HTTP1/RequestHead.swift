import Blobs

/// The head of a request, as received. RFC 9112 §3.
package struct RequestHead: Sendable {
  package var method: String
  /// The request target: the word between the method and the version in the request line.
  package var target: [UInt8]
  package var isHTTP11: Bool
  package var headers: HTTPHeaders
  /// Bytes of the body; nil for a chunked body, whose length is known only at its end.
  package var contentLength: Int64? = 0

  package init(method: String, target: [UInt8], isHTTP11: Bool, headers: HTTPHeaders) {
    (self.method, self.target, self.isHTTP11, self.headers) = (method, target, isHTTP11, headers)
  }
}

/// Why a request is invalid. The server answers with `status` and closes the connection, because the start of the next
/// request is unknown.
package struct RequestProblem: Error, Equatable {
  package let status: Int
  package let message: String

  init(_ status: Int, _ message: String) { (self.status, self.message) = (status, message) }
}

/// The first line of a request. RFC 9112 §3.
struct RequestLine {
  let method: String
  let target: [UInt8]
  let isHTTP11: Bool

  /// `line` excludes its line break.
  init(_ line: UnsafeRawBufferPointer) throws(RequestProblem) {
    let words = line.split(separator: 32, maxSplits: 3, omittingEmptySubsequences: false)
    guard words.count == 3 else {
      throw RequestProblem(
        400, "the request line must be a method, a target and a version, with one blank between them")
    }
    for byte in words[0] where !byte.isTokenByte { throw RequestProblem(400, "the request's method is none") }
    if words[0].isEmpty { throw RequestProblem(400, "the request line has no method") }
    if words[1].isEmpty { throw RequestProblem(400, "the request line has no target") }
    for byte in words[1] where byte <= 32 || byte == 127 {
      throw RequestProblem(400, "the request's target has a control character in it")
    }
    isHTTP11 = try Self.isHTTP11(UnsafeRawBufferPointer(rebasing: words[2]))
    method = String(decoding: words[0], as: UTF8.self)
    target = Array(words[1])
  }

  private static func isHTTP11(_ version: UnsafeRawBufferPointer) throws(RequestProblem) -> Bool {
    guard version.count == 8, version.begins(with: "HTTP/"), version[6] == UInt8(ascii: "."),
      48...57 ~= version[5], 48...57 ~= version[7]
    else { throw RequestProblem(400, "the request line does not end with a version of HTTP") }
    if version[5] != UInt8(ascii: "1") { throw RequestProblem(505, "this server speaks HTTP/1.1") }
    return version[7] > UInt8(ascii: "0")
  }
}

extension RequestHead {
  /// Determines the length of the body. Throws if the fields are ambiguous: a proxy in front of the server could then
  /// take a part of this request for the next one. RFC 9112 §6, §11.2.
  mutating func findLength() throws(RequestProblem) {
    var (length, lengths): (String?, Int) = (nil, 0)
    var (coding, codings): (String?, Int) = (nil, 0)
    for (name, value) in headers.fields {
      if name.isSameField("Content-Length") { (length, lengths) = (value, lengths + 1) }
      if name.isSameField("Transfer-Encoding") { (coding, codings) = (value, codings + 1) }
    }
    if let length {
      if lengths > 1 { throw RequestProblem(400, "a request may have one Content-Length, this one has \(lengths)") }
      if coding != nil { throw RequestProblem(400, "a request may not have Transfer-Encoding and Content-Length") }
      contentLength = try Self.length(length)
    }
    guard let coding else {
      // The body would end when the connection closes, which looks the same as a broken connection.
      if !isHTTP11, length == nil, ["PUT", "POST", "PATCH"].contains(method) {
        throw RequestProblem(411, "\(method) in HTTP/1.0 needs a Content-Length")
      }
      return
    }
    if codings > 1 { throw RequestProblem(400, "a request may have one Transfer-Encoding, this one has \(codings)") }
    if !isHTTP11 { throw RequestProblem(400, "HTTP/1.0 has no Transfer-Encoding") }
    if coding.isEmpty { throw RequestProblem(400, "Transfer-Encoding is empty") }
    if !coding.isSameField("chunked") {
      throw RequestProblem(501, "the transfer coding '\(coding.prefix(100))' is not spoken")
    }
    contentLength = nil
  }

  private static func length(_ text: String) throws(RequestProblem) -> Int64 {
    if text.isEmpty || !text.utf8.allSatisfy({ 48...57 ~= $0 }) {
      throw RequestProblem(400, "Content-Length must be a decimal number")
    }
    guard let length = Int64(digits: text) else { throw RequestProblem(413, "no body has \(text.prefix(100)) bytes") }
    return length
  }
}
