import BlobHTTP
import Blobs

/// The error that an S3 server reports.
struct S3ErrorResponse: Sendable {
  var code: String
  var message: String
  /// The bucket's region, according to the server.
  var region: String?

  /// nil: the response contains no known error. A response to HEAD has only fields.
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

  /// Temporary errors, such as `SlowDown`: the same request may succeed later.
  private static let passing: Set<String> = [
    "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "OperationAborted", "Busy", "ServerBusy",
    "TooManyRequests", "RequestLimitExceeded", "ThrottlingException", "Throttling", "BandwidthLimitExceeded",
  ]
  /// The bytes were damaged or lost on the way.
  private static let garbled: Set<String> = [
    "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody", "InvalidPart",
    "InvalidPartOrder",
  ]
  /// The keys, the account or the signature are refused, whatever the object.
  private static let ofCredentials: Set<String> = [
    "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "RequestTimeTooSkewed",
    "AuthorizationHeaderMalformed", "AuthorizationQueryParametersError", "AccountProblem", "AllAccessDisabled",
    "NotSignedUp", "InvalidSecurity", "UnsupportedSignature", "TokenRefreshRequired", "MissingSecurityHeader",
    "AuthFailure", "SignatureVersionNotSupported",
  ]
  /// Other requests would fail too.
  private static let general: Set<String> = ofCredentials.union([
    "NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "TemporaryRedirect", "QuotaExceeded",
    "InsufficientStorage", "InsufficientCapacity", "InvalidStorageClass", "XMinioStorageFull",
  ])

  var recovery: UploadError.Recovery? {
    if Self.passing.contains(code) { return .retry(after: nil) }
    if Self.garbled.contains(code) { return .resync }
    if code == "NoSuchUpload" { return .restart }
    return Self.general.contains(code) ? .giveUp : nil
  }

  /// nil if the response has only fields.
  var name: String? { code.isEmpty ? nil : code }

  /// The upload does not exist any more. Ceph reports a missing key instead, under which it stores the upload's parts.
  var isOfGoneUpload: Bool { code == "NoSuchUpload" || code == "NoSuchKey" }

  /// The body needs a checksum: buckets with default object locks, or with such a policy, require it.
  var wantsChecksum: Bool {
    ["InvalidRequest", "MissingContentMD5", "InvalidDigest"].contains(code)
      && (message.contains("Content-MD5") || message.contains("x-amz-checksum"))
  }

  var refusesCredentials: Bool { Self.ofCredentials.contains(code) }

  var isGeneral: Bool { Self.general.contains(code) }

  /// What the user can do, if the server's message does not say it.
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

/// An S3 server refuses the keys or the signature, so no other request to it can succeed.
package struct RefusedKeys: Error {
  /// The server's error code, or the status if there is no code.
  package let code: String
}

extension UploadError {
  /// An error from an S3 server's response that is no success, or only claims to be one. `signer`: knows the secrets
  /// that the message must not contain.
  init(_ request: HTTPRequest, _ response: HTTPResponse, s3 refusal: S3ErrorResponse?, _ signer: S3Signer) {
    let secrets = signer.secrets
    self.init(request, secrets.marked(response))
    if status == 401 { cause = RefusedKeys(code: "401") }
    if 300..<400 ~= response.status {
      message +=
        ": not followed, since what is signed goes to no other place. If that is the right one, say so by --endpoint "
        + "or --region"
    }
    guard let refusal, !refusal.code.isEmpty else { return }
    func mayBeShown(_ text: String) -> Bool {
      !response.repeatsSecret && !text.isEmpty && !secrets.isOne(in: text.utf8)
    }
    message = "\(request.method) \(request.url): \(response.status)"
    if mayBeShown(refusal.code) { message += " \(refusal.code.shownLine(64))" }
    if let advice = refusal.advice {
      message += ": \(advice)"
    } else if mayBeShown(refusal.message) {
      message += ": \(refusal.message.shownLine(200))"
    }
    if let recovery = refusal.recovery { self.recovery = recovery }
    if case .retry = recovery { recovery = .retry(after: response.headers.retryAfter) }
    if refusal.isGeneral { side = .destination }
    if refusal.refusesCredentials { cause = RefusedKeys(code: refusal.code) }
    // The general advice for a 403 or 404 fits none of these errors.
    if refusal.advice != nil { status = nil }
  }
}

extension String {
  /// The first line without control characters, at most `most` characters.
  func shownLine(_ most: Int) -> String {
    let line = prefix { !$0.isNewline }.prefix(most)
    return String(line.unicodeScalars.filter { $0.properties.generalCategory != .control }.map(Character.init))
  }
}
