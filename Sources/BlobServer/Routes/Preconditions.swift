import BlobHTTP

/// The preconditions of a request for a file that is there. RFC 9110 §13.1, §13.2.2.
enum Preconditions {
  /// For a request that changes or removes the file. Throws 412 when the headers ask for another version than `item`.
  static func check(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) {
    try checkVersion(headers, item)
    if isExcluded(item, by: headers) == true {
      throw ServerError(412, "the file is there in a version that If-None-Match excludes")
    }
  }

  /// For a request that reads the file: whether the client has this version already, which is answered by 304. Throws 412
  /// when the headers ask for another version than `item`.
  static func clientHasIt(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) -> Bool {
    try checkVersion(headers, item)
    if let isExcluded = isExcluded(item, by: headers) { return isExcluded }
    return headers["If-Modified-Since"].flatMap { HTTPDate.seconds($0) }.map { item.modifiedSeconds <= $0 } ?? false
  }

  private static func checkVersion(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) {
    if let wanted = EntityTags("If-Match", of: headers) {
      if !wanted.include(item) {
        throw ServerError(412, "the file is not the version that If-Match names")
      }
    } else if let text = headers["If-Unmodified-Since"], let limit = HTTPDate.seconds(text),
      item.modifiedSeconds > limit
    {
      throw ServerError(412, "the file was modified after the time that If-Unmodified-Since names")
    }
  }

  /// nil: the request has no `If-None-Match`, whose comparison is the weak one.
  private static func isExcluded(_ item: StoredItem, by headers: HTTPHeaders) -> Bool? {
    EntityTags("If-None-Match", of: headers)?.include(item, weakly: true)
  }
}
