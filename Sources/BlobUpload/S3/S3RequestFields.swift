import BlobHTTP

/// Removes the user's fields that do not belong to a request: Amazon rejects a request with fields of another
/// operation, with 400 InvalidArgument.
///
/// Fields for new objects belong to `PutObject` and `CreateMultipartUpload`. A customer's key belongs to every request
/// that writes or reads the object's bytes.
/// https://docs.aws.amazon.com/AmazonS3/latest/userguide/specifying-s3-encryption.html
enum S3RequestFields {
  private static let ofCreation = [
    "x-amz-server-side-encryption", "x-amz-object-lock-", "x-amz-acl", "x-amz-grant-", "x-amz-tagging",
    "x-amz-storage-class", "x-amz-website-redirect-location", "x-amz-meta-",
  ]
  private static let ofCustomerKey = "x-amz-server-side-encryption-customer-"

  static func removeMisplaced(from request: inout HTTPRequest, bucketPath: String) {
    // Most requests upload a small object.
    if request.method == "PUT", request.url.query == nil { return }
    let query = request.url.query ?? ""
    if request.method == "POST", query.hasPrefix("uploads") { return }
    let isOfBucket = request.url.path == bucketPath
    let takesKey =
      switch request.method {
      case "PUT", "POST", "HEAD": !isOfBucket
      case "GET": !isOfBucket && query.isEmpty
      default: false
      }
    for (name, _) in request.headers.fields {
      let lower = name.lowercased()
      guard ofCreation.contains(where: { lower.hasPrefix($0) }) else { continue }
      if !(takesKey && lower.hasPrefix(ofCustomerKey)) { request.headers[name] = nil }
    }
  }
}
