import BlobHTTP
import Blobs

/// What an S3 server says of why not.
struct S3Refusal: Sendable {
  var code: String
  var message: String
  /// Where the bucket is instead.
  var region: String?

  /// nil: the answer says nothing that is understood. HEAD has nothing but fields.
  init?(_ response: HTTPResponse) {
    region = response.headers["x-amz-bucket-region"]
    if let error = XMLTree(response.body), error.name == "Error", let code = error.text("Code") {
      self.code = String(code.prefix(64))
      message = error.text("Message") ?? ""
      region = region ?? error.text("Region")
    } else if region != nil {
      (code, message) = ("", "")
    } else {
      return nil
    }
    if let named = region, !S3Address.isRegion(named) { region = nil }
  }

  init(code: String, message: String = "") { (self.code, self.message) = (code, message) }

  /// The same request, sent again, may do: `SlowDown` and the like.
  private static let passing: Set<String> = [
    "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted", "Busy", "ServerBusy",
    "TooManyRequests", "RequestLimitExceeded", "ThrottlingException", "Throttling", "BandwidthLimitExceeded",
  ]
  /// Something happened to the bytes on their way.
  private static let garbled: Set<String> = [
    "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody", "InvalidPart",
    "InvalidPartOrder",
  ]
  /// Nothing else would be taken either.
  private static let general: Set<String> = [
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed",
    "NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
    "AuthorizationQueryParametersError", "AccountProblem", "AllAccessDisabled", "NotSignedUp", "InvalidSecurity",
    "QuotaExceeded", "InsufficientStorage", "InsufficientCapacity", "UnsupportedSignature", "InvalidStorageClass",
    "TokenRefreshRequired", "MissingSecurityHeader", "XMinioStorageFull", "AuthFailure", "SignatureVersionNotSupported",
  ]

  var recovery: UploadError.Recovery? {
    if Self.passing.contains(code) { return .retry(after: nil) }
    if Self.garbled.contains(code) { return .resync }
    if code == "NoSuchUpload" { return .restart }
    return Self.general.contains(code) ? .giveUp : nil
  }

  /// nil where only fields have come.
  var name: String? { code.isEmpty ? nil : code }

  /// The upload that was asked about is no more. Ceph calls it the key, which the upload's parts are kept under.
  var isOfGoneUpload: Bool { code == "NoSuchUpload" || code == "NoSuchKey" }

  /// A body must come with a checksum: where objects are locked by default, and in buckets whose policy says so.
  var wantsChecksum: Bool {
    ["InvalidRequest", "MissingContentMD5", "InvalidDigest"].contains(code)
      && (message.contains("Content-MD5") || message.contains("x-amz-checksum"))
  }

  var isGeneral: Bool { Self.general.contains(code) }

  /// What can be done about it, where the server's words do not say it.
  var advice: String? {
    switch code {
    case "InvalidAccessKeyId": "nobody there has this access key: is it the right one, for this endpoint?"
    case "SignatureDoesNotMatch": "is the secret access key the one that belongs to the access key?"
    case "ExpiredToken", "TokenRefreshRequired":
      "the session token has expired: get new credentials, then run the same command again"
    case "InvalidToken": "the session token is not valid there: is it the one that belongs to the access key?"
    case "RequestTimeTooSkewed": "the clock of this machine, and the time the server gives, do not agree"
    case "NoSuchBucket": "there is no such bucket: make it first, or is its name right?"
    case "EntityTooLarge": "it is larger than the server takes"
    case "KeyTooLongError", "KeyTooLong": "its name is longer than the server takes"
    default: nil
    }
  }
}

extension UploadError {
  /// An S3 server's answer that is no success, or whose success is none. `signer`: what it must not be shown to know.
  init(_ request: HTTPRequest, _ response: HTTPResponse, s3 refusal: S3Refusal?, _ signer: S3Signer) {
    self.init(request, response)
    if 300..<400 ~= response.status {
      message +=
        ": not followed, since what is signed goes to no other place. If that is the right one, say so by --endpoint "
        + "or --region"
    }
    guard let refusal, !refusal.code.isEmpty else { return }
    message = "\(request.method) \(request.url): \(response.status) \(refusal.code.shownLine(64))"
    if let advice = refusal.advice {
      message += ": \(advice)"
    } else if !signer.isSecret(in: refusal.message), !refusal.message.isEmpty {
      message += ": \(refusal.message.shownLine(200))"
    }
    if let recovery = refusal.recovery { self.recovery = recovery }
    if case .retry = recovery { recovery = .retry(after: response.headers.retryAfter) }
    if refusal.isGeneral { side = .destination }
    // What the tool says of a 403 or 404 in general fits none of these.
    if refusal.advice != nil { status = nil }
  }
}

extension String {
  /// One line without control characters, `most` characters at the most.
  func shownLine(_ most: Int) -> String {
    let line = prefix { !$0.isNewline }.prefix(most)
    return String(line.unicodeScalars.filter { $0.properties.generalCategory != .control }.map(Character.init))
  }
}
