import Blobs

/// A `multipart/form-data` body, composed of other sources. It is streamed, without a copy in memory or on disk.
///
/// ```swift
/// var form = MultipartForm()
/// form.appendField("Trip", name: "title")
/// form.appendPart(FileSource("film.mov"), name: "file", fileName: "film.mov", mimeType: "video/quicktime")
/// let answer = try await transport.send(form.request(to: url), body: BlobSlice(form), Exchange())
/// ```
///
/// The form's length is known in advance if the length of every part is. It can be opened at any offset, and
/// repeatedly, if every part can. Its validator changes with the version of any part. If a part yields fewer or more
/// bytes than declared, reading fails at that part's last byte at the latest. Parts are sent in the order in which they
/// were appended; receivers that route by fields expect the fields before the files. RFC 7578.
public struct MultipartForm: BlobSource {
  /// The delimiter between the parts. Copies share it, so that a body that is opened again has the same bytes.
  public let boundary: String
  /// The parts in the order in which they are sent.
  public private(set) var parts: [FormPart] = []

  /// Creates a form without parts.
  /// - `boundary`: 1 to 70 characters of RFC 2046 §5.1.1 that do not end in a space, for a form that must be identical
  ///   in a later run. nil generates 128 random bits, which no part contains by accident.
  public init(boundary: String? = nil) {
    self.boundary = boundary ?? Self.randomBoundary()
    precondition(Self.isBoundary(self.boundary), "this cannot be a boundary: \(self.boundary)")
  }

  /// Appends a field with UTF-8 text.
  public mutating func appendField(_ value: String, name: String) {
    append(FormPart(DataSource(value), name: Array(name.utf8), length: nil))
  }

  /// Appends bytes in memory.
  public mutating func appendPart(
    _ bytes: [UInt8], name: String, fileName: String? = nil, mimeType: String? = nil, headers: HTTPHeaders = [:]
  ) {
    appendPart(DataSource(bytes), name: name, fileName: fileName, mimeType: mimeType, headers: headers)
  }

  /// Appends any source.
  /// - `length`: bytes of a source that does not know its length; fewer are `.truncated`, more `.changed`.
  /// - `headers`: fields that follow `Content-Disposition` and `Content-Type`.
  public mutating func appendPart(
    _ source: any BlobSource, name: String, fileName: String? = nil, length: Int64? = nil, mimeType: String? = nil,
    headers: HTTPHeaders = [:]
  ) {
    var fields = HTTPHeaders()
    let type = mimeType ?? (fileName == nil ? nil : "application/octet-stream")
    if let type, headers["Content-Type"] == nil { fields.add("Content-Type", type) }
    for field in headers.fields { fields.add(field.name, field.value) }
    append(
      FormPart(
        source, name: Array(name.utf8), fileName: fileName.map { Array($0.utf8) }, length: length, headers: fields))
  }

  /// Adds a part after all others.
  public mutating func append(_ part: FormPart) { parts.append(part) }

  /// The value of `Content-Type`.
  public var contentType: String {
    // RFC 2045 §5.1: a value that is not a token is quoted. A boundary contains neither quotes nor backslashes.
    let isToken = boundary.utf8.allSatisfy { !"(),/:=? ".utf8.contains($0) }
    return "multipart/form-data; boundary=" + (isToken ? boundary : "\"\(boundary)\"")
  }

  /// A request with this form's `Content-Type`. Does not access the parts.
  public func request(to url: HTTPURL, method: String = "POST") -> HTTPRequest {
    HTTPRequest(method, url, ["Content-Type": contentType])
  }

  // MARK: As a source

  /// `.random` if every part is.
  public var access: BlobAccess { parts.allSatisfy { $0.source.access == .random } ? .random : .sequential }

  /// Calls `info` of every part. An error names the part.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a form")
    return try whole(FormMemorySource.Mark()).info(cancel)
  }

  /// To reach an offset after a part of unknown length, the reader reads through that part.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open a form")
    let mark = FormMemorySource.Mark()
    return FormReader(try whole(mark).open(at: offset, cancel), mark)
  }

  /// Offset of the last part's first byte if all parts before it are in memory; 0 if they are not, or if there are no
  /// parts.
  package var lengthBeforeLastPart: Int64 {
    guard !parts.isEmpty, parts.dropLast().allSatisfy({ $0.source is DataSource }) else { return 0 }
    // A form with a malformed part header fails when it is opened, so the error does not matter here.
    guard let heads = try? heads() else { return 0 }
    let contents = parts.dropLast().map { ($0.source as? DataSource)?.bytes.count ?? 0 }
    return Int64(heads.map(\.count).reduce(0, +) + contents.reduce(0, +))
  }

  /// Concatenates the headers, the contents and the closing boundary.
  private func whole(_ mark: FormMemorySource.Mark) throws(BlobError) -> ConcatenatedSource {
    var pieces: [any BlobSource] = []
    for (part, head) in zip(parts, try heads()) {
      pieces.append(FormMemorySource(head, mark))
      if let data = part.source as? DataSource, part.length == nil {
        pieces.append(FormMemorySource(data, mark))
      } else {
        pieces.append(PartSource(part))
      }
    }
    let end = parts.isEmpty ? "--\(boundary)--\r\n" : "\r\n--\(boundary)--\r\n"
    pieces.append(FormMemorySource(Array(end.utf8), mark))
    return ConcatenatedSource(pieces)
  }

  /// The bytes before the content of each part: the boundary and the part's header block.
  private func heads() throws(BlobError) -> [[UInt8]] {
    var heads: [[UInt8]] = []
    for part in parts {
      heads.append(Array("\(heads.isEmpty ? "" : "\r\n")--\(boundary)\r\n".utf8) + (try part.head()))
    }
    return heads
  }

  // MARK: Boundaries

  private static func randomBoundary() -> String {
    var random = SystemRandomNumberGenerator()
    let digits = (0..<2).map { _ in
      let number = String(random.next(), radix: 16)
      return String(repeating: "0", count: 16 - number.utf8.count) + number
    }
    return "fullbore-" + digits.joined()
  }

  static func isBoundary(_ text: String) -> Bool {
    (1...70).contains(text.utf8.count) && text.utf8.last != UInt8(ascii: " ")
      && text.utf8.allSatisfy { $0.isLetterOrDigit || "'()+_,-./:=? ".utf8.contains($0) }
  }
}

extension UInt8 {
  fileprivate var isLetterOrDigit: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}
