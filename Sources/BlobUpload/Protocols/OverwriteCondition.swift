import BlobHTTP

// `If-Match` lets a request replace a file, the one with an ETag or any one (`*`), and requires it to be there.
// `If-None-Match: *` requires that no file is there. RFC 9110 §13.1.1, §13.1.2.
extension HTTPRequest {
  /// The most requests that follow a refusal, since other clients may make and delete the file in turn.
  static let mostConditions = 3

  /// Adds the condition that the request replaces `file` and no other one.
  mutating func replace(only file: ReplacedFile) {
    (headers["If-Match"], headers["If-None-Match"]) = (nil, nil)
    switch file {
    case .unknown, .unversioned: break
    case .nothing: headers["If-None-Match"] = "*"
    case .version(let tag): headers["If-Match"] = tag
    }
  }

  /// Adds the condition for a server that replaces files only on request: the file that `target` may replace, or any one if
  /// it is not known.
  mutating func replaceFile(of target: UploadTarget) {
    guard target.overwrite else { return }
    replace(only: target.replaced)
    if !target.replaced.isNamed { headers["If-Match"] = "*" }
  }

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
