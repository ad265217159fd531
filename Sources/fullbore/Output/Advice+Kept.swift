import BlobHTTP
import BlobUpload
import Blobs

/// Advice for a failure of which only the message is stored; nil if there is none. `goesOn` means that the next push
/// resumes the upload.
func remedy(for message: String, goesOn: Bool = true) -> String? {
  readOnlyHint(for: message) ?? folderHint(for: message) ?? NameClash.hint(for: message)
    ?? statusCode(in: message).flatMap { UploadError.advice($0, to: message, goesOn: goesOn) }
}

extension BlobError {
  /// Advice for a command that reads a source at a server; nil: there is none.
  var readingAdvice: String? {
    // A reader that has waited in vain says so with the error of its last attempt.
    let cause = (cause as? UploadError)?.cause ?? cause
    return UploadError(.giveUp, .source, message, status: statusCode(in: message), cause: cause).readingAdvice
  }
}

/// If the server says that it accepts no uploads, no other path or protocol helps.
func readOnlyHint(for message: String) -> String? {
  guard message.contains(" 405 (\(HTTPResponse.noUploads))") else { return nil }
  return "Is it the right server? 'fullbore serve' takes uploads where it was started without --read-only"
}

/// tus servers create uploads at one URL, which usually ends in a slash; a URL with a file's name is not such a URL.
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

/// The status in a message in the format of `UploadError`: `PUT http://host/name: 409 (conflict): …`.
private func statusCode(in message: String) -> Int? {
  let words = message.split(separator: " ")
  for (before, word) in zip(words, words.dropFirst()) where before.hasSuffix(":") && word.prefix(4).count == 3 {
    if let status = Int(word) { return status }
  }
  return nil
}
