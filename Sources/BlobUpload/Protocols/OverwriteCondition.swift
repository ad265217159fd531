import BlobHTTP

// `If-Match: *` lets a request replace a file, and requires one. RFC 9110 §13.1.1.
extension HTTPRequest {
  /// The most requests that follow a refusal, since other clients may make and delete the file in turn.
  static let mostConditions = 3

  /// Adds `If-Match: *` or removes it, if this may be the reason why a request that may replace a file was refused. Returns
  /// false, and changes nothing, if the refusal has another reason.
  package mutating func changeCondition(after response: HTTPResponse) -> Bool {
    let isConditional = headers["If-Match"] != nil
    // Servers that do not replace a file unasked answer 409 or 412.
    guard isConditional ? response.status == 412 : [409, 412].contains(response.status) else { return false }
    headers["If-Match"] = isConditional ? nil : "*"
    return true
  }
}
