import BlobHTTP

/// Detects requests that say that their body is only part of a file. Such a body is never published as the whole file,
/// even if the request is otherwise an ordinary one: it may use an unsupported version of resumable uploads, repeat a
/// field, or combine fields of two protocols.
enum PartialBody {
  /// Throws 400 for a PUT or POST, of any protocol, whose body is one or several ranges of a file. RFC 9110 §14.5,
  /// §14.6.
  static func refuseRanges(_ headers: HTTPHeaders) throws(ServerError) {
    for (name, value) in headers.fields {
      let isRange = name.isSameField("Content-Range")
      if !isRange, !name.isSameField("Content-Type") || !essence(value).isSameField("multipart/byteranges") { continue }
      throw ServerError(
        400,
        "\(name): \(value.prefix(100)) says that the body has ranges of a file; a PUT or POST takes whole files, and "
          + "resumable uploads (tus, Upload-Draft-Interop-Version) take parts")
    }
  }

  private static func essence(_ mediaType: String) -> String {
    Substring(mediaType.utf8.prefix { $0 != UInt8(ascii: ";") }).trimmed
  }

  /// Throws 400 if the request says that its body is only a part; for bodies that would be published as the whole file.
  static func refuse(_ headers: HTTPHeaders) throws(ServerError) {
    for (name, value) in headers.fields where saysPart(name, value) {
      throw ServerError(
        400,
        "\(name): \(value.prefix(100)) says that this is a part of a file, and nothing else in the request tells how to "
          + "go on with it; resumable uploads by Upload-Draft-Interop-Version 3 to 8, or by tus, take parts")
    }
  }

  /// Throws 400 if a request that creates an upload has an offset other than 0.
  static func refuseOffset(_ headers: HTTPHeaders) throws(ServerError) {
    for (name, value) in headers.fields where name.isSameField("Upload-Offset") && saysPart(name, value) {
      throw ServerError(400, "a new upload begins at byte 0, not at Upload-Offset \(value.prefix(100))")
    }
  }

  /// The length of the whole file, from `Upload-Length`; nil: the request has no such field. Throws 400 if the media
  /// type says that the body is a part, for an invalid length, and for two different lengths.
  static func wholeLength(ofPut headers: HTTPHeaders) throws(ServerError) -> Int64? {
    for (name, value) in headers.fields where name.isSameField("Content-Type") { try checkMediaType(value) }
    var whole: Int64?
    for (name, value) in headers.fields where name.isSameField("Upload-Length") {
      guard let length = StructuredField.integer(value), length >= 0 else {
        throw ServerError(
          400,
          "Upload-Length: \(value.prefix(100)) is no length, so the body cannot be checked against it; it must be the "
            + "number of bytes of the whole file, or be left out")
      }
      if let whole { try check(length, isWhole: whole) }
      whole = length
    }
    return whole
  }

  /// Throws 400 for the media types of appends.
  private static func checkMediaType(_ value: String) throws(ServerError) {
    let essence = essence(value)
    if [IETF.contentType, Tus.contentType].contains(where: { essence.isSameField($0) }) {
      throw ServerError(
        400, "Content-Type: \(essence) is for PATCH: it says that this is a part of a file; PUT takes whole files")
    }
  }

  /// Throws 400 if `length`, the body's length, differs from the length of the whole file.
  static func check(_ length: Int64, isWhole whole: Int64) throws(ServerError) {
    if length == whole { return }
    throw ServerError(
      400,
      "Upload-Length says that the file has \(whole) bytes, and the request says or brings \(length); PUT takes whole files",
      problem: "inconsistent-upload-length")
  }

  /// A value of the wrong type is ignored. RFC 9651 §4.2.
  private static func saysPart(_ name: String, _ value: String) -> Bool {
    if name.isSameField("Upload-Complete") { return StructuredField.boolean(value) == false }
    if name.isSameField("Upload-Incomplete") { return StructuredField.boolean(value) == true }
    if name.isSameField("Upload-Offset") { return StructuredField.integer(value).map { $0 != 0 } ?? false }
    return false
  }
}
