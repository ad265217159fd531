import BlobHTTP
import BlobUpload

/// What can be done about a failure of which only the message was kept; nil: the message says all.
func remedy(for message: String) -> String? {
  readOnlyHint(for: message) ?? folderHint(for: message)
    ?? statusCode(in: message).flatMap { UploadError.advice($0, to: message) }
}

/// No other path or protocol helps where the server says that it takes no uploads.
func readOnlyHint(for message: String) -> String? {
  guard message.contains(" 405 (\(HTTPResponse.noUploads))") else { return nil }
  return "Is it the right server? 'fullbore serve' takes uploads where it was started without --read-only"
}

/// tus servers make uploads at one URL, which ends in a slash mostly: one that was given with a file's name is none.
func folderHint(for message: String) -> String? {
  let words = message.split(separator: " ", maxSplits: 3)
  guard words.count > 2, words[0] == "POST", [404, 405].contains(Int(words[2])), words[1].hasSuffix(":") else {
    return nil
  }
  let url = words[1].dropLast()
  guard !url.hasSuffix("/"), let slash = url.lastIndex(of: "/"), url.contains("://") else { return nil }
  let name = url[url.index(after: slash)...]
  return "Is the path right? A tus server takes the name apart from the URL: \(url[...slash]) with --name \(name)"
}

/// As `UploadError` words it: `PUT http://host/name: 409 (conflict): …`.
private func statusCode(in message: String) -> Int? {
  let words = message.split(separator: " ")
  for (before, word) in zip(words, words.dropFirst()) where before.hasSuffix(":") && word.prefix(4).count == 3 {
    if let status = Int(word) { return status }
  }
  return nil
}
