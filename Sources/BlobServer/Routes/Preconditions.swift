import BlobHTTP

/// Evaluates the preconditions of a request for an existing file. RFC 9110 §13.1, §13.2.2.
enum Preconditions {
  /// For a request that changes or removes the file. Throws 412 if a precondition is false for `item`.
  static func check(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) {
    try checkVersion(headers, item)
    if isExcluded(item, by: headers) == true {
      throw ServerError(412, "the file is there in a version that If-None-Match excludes")
    }
  }

  /// For a request that reads the file: whether the client already has this version, so that the response is 304.
  /// Throws 412 if another precondition is false for `item`.
  static func clientHasIt(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) -> Bool {
    try checkVersion(headers, item)
    if let isExcluded = isExcluded(item, by: headers) { return isExcluded }
    return headers["If-Modified-Since"].flatMap { HTTPDate.seconds($0) }.map { item.modifiedSeconds <= $0 } ?? false
  }

  /// For something that is made of files. Throws 412 if `If-Match` does not name its version.
  static func checkMatch(_ headers: HTTPHeaders, _ etag: String) throws(ServerError) {
    if EntityTags("If-Match", of: headers)?.include(etag) == false {
      throw ServerError(412, "the file is not the version that If-Match names")
    }
  }

  private static func checkVersion(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) {
    try checkMatch(headers, item.etag)
    if headers["If-Match"] == nil, let text = headers["If-Unmodified-Since"], let limit = HTTPDate.seconds(text),
      item.modifiedSeconds > limit
    {
      throw ServerError(412, "the file was modified after the time that If-Unmodified-Since names")
    }
  }

  /// Whether `If-None-Match` matches, by weak comparison; nil if the request has no such field.
  private static func isExcluded(_ item: StoredItem, by headers: HTTPHeaders) -> Bool? {
    EntityTags("If-None-Match", of: headers)?.include(item.etag, weakly: true)
  }
}
