import Blobs

/// One part of a `MultipartForm`: a field or a file.
public struct FormPart: Sendable {
  /// The field's name as bytes, because file names need not be UTF-8.
  public var name: [UInt8]
  /// The file name; nil for a part that is a plain field.
  public var fileName: [UInt8]?
  /// The content of the part. It is opened when the form is sent.
  public var source: any BlobSource
  /// Length in bytes, for a source that does not know its length; nil to use the source's length.
  public var length: Int64?
  /// `Content-Type` and other fields. `Content-Disposition` is generated from the names and must not be included.
  public var headers: HTTPHeaders

  /// Creates a part from bytes of names in any encoding. `length` is in bytes; nil: the source's own length.
  public init(
    _ source: any BlobSource, name: [UInt8], fileName: [UInt8]? = nil, length: Int64? = nil, headers: HTTPHeaders = [:]
  ) {
    precondition(length ?? 0 >= 0)
    self.name = name
    self.fileName = fileName
    self.source = source
    self.length = length
    self.headers = headers
  }

  /// The header block with its final empty line. Throws `.unsupported` for a field that a part cannot have.
  func head() throws(BlobError) -> [UInt8] {
    var head = Array("Content-Disposition: form-data; name=".utf8) + Self.quoted(name)
    if let fileName { head += Array("; filename=".utf8) + Self.quoted(fileName) }
    head += lineBreak
    for (name, value) in headers.fields {
      if HTTPRequest.problem(name, value) != nil || name.isSameField("Content-Disposition") {
        throw BlobError(.unsupported, "\(self): its header \(name.debugDescription) is none that a part can have")
      }
      head += Array("\(name): \(value)".utf8) + lineBreak
    }
    return head + lineBreak
  }

  /// Quotes a name as browsers do: only the three bytes that would end the value are escaped. WHATWG HTML §4.10.21.8.
  static func quoted(_ name: [UInt8]) -> [UInt8] {
    var text = [UInt8(ascii: "\"")]
    text.reserveCapacity(name.count + 2)
    for byte in name {
      switch byte {
      case UInt8(ascii: "\""): text += Array("%22".utf8)
      case UInt8(ascii: "\r"): text += Array("%0D".utf8)
      case UInt8(ascii: "\n"): text += Array("%0A".utf8)
      default: text.append(byte)
      }
    }
    text.append(UInt8(ascii: "\""))
    return text
  }
}

extension FormPart: CustomStringConvertible {
  public var description: String { "form part \(String(decoding: name, as: UTF8.self).debugDescription)" }
}

private let lineBreak = Array("\r\n".utf8)

/// The content of a part, checked against its declared length. `BufferedSource` reads the source in full blocks where
/// it needs them, because the form is read in pieces of any size. Errors name the part.
struct PartSource: BlobSource {
  private var part: FormPart

  init(_ part: FormPart) {
    self.part = part
    self.part.source = BufferedSource(part.source)
  }

  var access: BlobAccess { part.source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try checked(try part.naming { () throws(BlobError) in try part.source.info(cancel) })
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try part.naming { () throws(BlobError) in try part.source.open(at: offset, cancel) }
    return PartReader(part, reader, try checked(reader.info), at: offset)
  }

  private func checked(_ info: BlobInfo) throws(BlobError) -> BlobInfo {
    guard let declared = part.length else { return info }
    if let length = info.length, length != declared {
      throw BlobError(
        length < declared ? .truncated : .changed, "\(part): it has \(length) bytes, and \(declared) were declared")
    }
    return BlobInfo(length: declared, validator: info.validator, preferredRead: info.preferredRead)
  }
}

private final class PartReader: BlobReader {
  let info: BlobInfo
  private let part: FormPart
  private let reader: any BlobReader
  private let promised: ExpectedLength
  private var offset: Int64

  init(_ part: FormPart, _ reader: any BlobReader, _ info: BlobInfo, at offset: Int64) {
    self.part = part
    self.reader = reader
    self.info = info
    self.offset = offset
    promised = ExpectedLength("\(part)", part.length)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try part.naming { () throws(BlobError) in try reader.read(into: buffer) }
    try promised.check(count, at: offset)
    offset += Int64(count)
    return count
  }

  func fileRegion() -> FileRegion? { reader.fileRegion() }

  /// For a source of unknown length, reads one more byte to check that it ends at the declared length.
  func finish() throws(BlobError) {
    if let length = part.length, offset == length, reader.info.length == nil {
      let count = try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte throws(BlobError) in
        try part.naming { () throws(BlobError) in try reader.read(into: byte) }
      }
      try promised.check(count, at: length)
    }
    try part.naming { () throws(BlobError) in try reader.finish() }
  }
}

extension FormPart {
  fileprivate func naming<Result>(_ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    do throws(BlobError) {
      return try body()
    } catch {
      var error = error
      if error.code != .cancelled { error.message = "\(self): \(error.message)" }
      throw error
    }
  }
}
