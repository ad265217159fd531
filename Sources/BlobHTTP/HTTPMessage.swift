import Blobs

/// Header fields in order. Names are case-insensitive and may occur more than once.
public struct HTTPHeaders: Sendable, ExpressibleByDictionaryLiteral {
  /// All fields in the order in which they were added, with their names as written.
  public private(set) var fields: [(name: String, value: String)]

  /// Creates an empty list of fields.
  public init() { fields = [] }
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { (name: $0.0, value: $0.1) }
  }

  /// The first value of `name`. Setting replaces every field of that name; nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { $0.name.isSameField(name) }?.value }
    set {
      fields.removeAll { $0.name.isSameField(name) }
      if let newValue { fields.append((name: name, value: newValue)) }
    }
  }

  mutating func reserve(_ count: Int) { fields.reserveCapacity(count) }

  /// Appends a field and keeps others of the same name.
  public mutating func add(_ name: String, _ value: String) { fields.append((name: name, value: value)) }

  /// The values of `name`, split at commas and trimmed, for lists such as `Tus-Extension`. RFC 9110 §5.6.1.
  public func list(_ name: String) -> [String] {
    fields.filter { $0.name.isSameField(name) }.flatMap { field in
      field.value.utf8.split(separator: UInt8(ascii: ",")).map { Substring($0).trimmed }.filter { !$0.isEmpty }
    }
  }

  /// A count of bytes or another non-negative number: digits only, below 2^63; nil for anything else.
  package func bytes(_ name: String) -> Int64? { self[name].flatMap { Int64(digits: $0) } }
}

/// A request without its body, which is passed separately as a `BlobSlice`.
public struct HTTPRequest: Sendable {
  /// The method, for example `PUT`. Its case matters.
  public var method: String
  /// The URL that the request is sent to.
  public var url: HTTPURL
  /// The header fields. The transport adds `Host` and those that describe the length of the body.
  public var headers: HTTPHeaders

  /// Creates a request without a body.
  public init(_ method: String, _ url: HTTPURL, _ headers: HTTPHeaders = [:]) {
    self.method = method
    self.url = url
    self.headers = headers
  }
}

/// Status and header fields of a response, final or interim (1xx).
public struct HTTPHead: Sendable {
  /// The status code, from 100 to 599.
  public var status: Int
  /// The header fields, as the server sent them.
  public var headers: HTTPHeaders

  /// Creates the head of a response.
  public init(status: Int, headers: HTTPHeaders) {
    self.status = status
    self.headers = headers
  }
}

/// A final response of any status.
public struct HTTPResponse: Sendable {
  /// The status and the header fields.
  public var head: HTTPHead
  /// The content, up to 1 MiB; empty when it was streamed to `Exchange.received`.
  public var body: [UInt8]
  /// The body repeats a secret of the request, so no text from it may be shown or stored.
  package var repeatsSecret = false

  /// Creates a response, for transports and tests.
  public init(head: HTTPHead, body: [UInt8] = []) {
    self.head = head
    self.body = body
  }

  /// The status code, from 200 to 599.
  public var status: Int { head.status }
  /// The header fields.
  public var headers: HTTPHeaders { head.headers }
  /// Whether the status is from 200 to 299.
  public var isSuccess: Bool { 200..<300 ~= head.status }
}

extension StringProtocol {
  /// Without spaces and tabs at either end. RFC 9110 §5.6.3, OWS.
  package var trimmed: String {
    // Compares bytes, because a blank and a combining character after it form one `Character`.
    var text = Substring(self).utf8
    while let first = text.first, first == UInt8(ascii: " ") || first == UInt8(ascii: "\t") { text.removeFirst() }
    while let last = text.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\t") { text.removeLast() }
    return String(Substring(text))
  }

  /// Field names are ASCII and compare without regard to case. RFC 9110 §5.1.
  package func isSameField(_ other: some StringProtocol) -> Bool { String(self).isSameField(String(other)) }
}

extension String {
  /// The same for `String`. Not generic, because it is called for every field of every message, also from other
  /// modules.
  package func isSameField(_ other: String) -> Bool {
    // Most names differ in length.
    if utf8.count != other.utf8.count { return false }
    let answer = utf8.withContiguousStorageIfAvailable { a in
      other.utf8.withContiguousStorageIfAvailable { b in
        for index in a.indices where a[index].lowercasedASCII != b[index].lowercasedASCII { return false }
        return true
      }
    }
    return (answer ?? nil) ?? utf8.elementsEqual(other.utf8) { $0.lowercasedASCII == $1.lowercasedASCII }
  }
}

extension UInt8 {
  fileprivate var lowercasedASCII: UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self ? self | 0x20 : self }
}
