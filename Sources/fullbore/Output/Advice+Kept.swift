import BlobUpload

/// What can be done about a failure of which only the message was kept; nil: the message says all.
func remedy(for message: String) -> String? { statusCode(in: message).flatMap { UploadError.advice($0) } }

/// As `UploadError` words it: `PUT http://host/name: 409 (conflict): …`.
private func statusCode(in message: String) -> Int? {
  let words = message.split(separator: " ")
  for (before, word) in zip(words, words.dropFirst()) where before.hasSuffix(":") && word.prefix(4).count == 3 {
    if let status = Int(word) { return status }
  }
  return nil
}
