/// What a person can do about a failure that an answer of the server has caused; nil: what the message says is all.
func remedy(for message: String) -> String? {
  guard let status = statusCode(in: message) else { return nil }
  return switch status {
  case 401: "give --token-file FILE with a token that it knows"
  case 403: "ask whoever runs the server for the right to write there"
  case 404, 405: "is the URL right, and does the server take uploads there?"
  case 409, 412: "push it under another name, or again with --overwrite"
  case 413: "the server has to allow larger files"
  case 507: "make room at the server"
  case 423, 429, 500, 502, 503, 504: "later it may work: 'fullbore resume'"
  default: nil
  }
}

/// As `UploadError` words it: `PUT http://host/name: 409 (conflict): …`.
private func statusCode(in message: String) -> Int? {
  let words = message.split(separator: " ")
  for (before, word) in zip(words, words.dropFirst()) where before.hasSuffix(":") && word.prefix(4).count == 3 {
    if let status = Int(word) { return status }
  }
  return nil
}
