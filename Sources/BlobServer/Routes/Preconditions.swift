import BlobHTTP

/// The preconditions of a request that removes a file. RFC 9110 §13.1, §13.2.2.
enum Preconditions {
  /// Throws 412 when the headers ask for another version of the file than `item`.
  static func check(_ headers: HTTPHeaders, _ item: StoredItem) throws(ServerError) {
    if headers["If-Match"] != nil {
      let wanted = headers.list("If-Match")
      if !wanted.contains("*"), !wanted.contains(item.etag) {
        throw ServerError(412, "the file is not the version that If-Match names")
      }
    } else if let text = headers["If-Unmodified-Since"], let limit = HTTPDate.seconds(text),
      item.modifiedSeconds > limit
    {
      throw ServerError(412, "the file was modified after the time that If-Unmodified-Since names")
    }
    let excluded = headers.list("If-None-Match")
    if excluded.contains("*") || excluded.contains(item.etag) || excluded.contains("W/" + item.etag) {
      throw ServerError(412, "the file is a version that If-None-Match excludes")
    }
  }
}
