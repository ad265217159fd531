import Platform

/// Converts `errno` to an error with the HTTP status for the client, who has named the file.
func failed(_ operation: String, _ what: String) -> ServerError {
  let number = errno
  var error = failed(operation, what, number)
  error.systemError = number
  return error
}

private func failed(_ operation: String, _ what: String, _ number: Int32) -> ServerError {
  let text = "\(operation) \(what): \(String(cString: strerror(number)))"
  switch number {
  case ENOENT: return ServerError(404, text)
  case ELOOP: return ServerError(403, "\(operation) \(what): symbolic links are not followed", kind: .notWritable)
  case EXDEV:
    return ServerError(
      403, "\(operation) \(what): it is on another file system, or another mount, than the served folder",
      kind: .notWritable)
  // EROFS has the status 500: a server does not start on a read-only file system, so a disk has failed since.
  case EACCES, EPERM: return ServerError(403, text, kind: .notWritable)
  case ENOTDIR: return ServerError(409, "\(operation) \(what): a file is in the place of a folder", kind: .folderTaken)
  case EISDIR: return ServerError(409, "\(operation) \(what): it is a folder", kind: .nameTaken)
  case ENAMETOOLONG: return ServerError(414, text, kind: .longName)
  case ENOSPC, EDQUOT: return ServerError(507, text)
  case EFBIG: return ServerError(413, text, kind: .tooLarge)
  case EAGAIN:
    var error = ServerError(503, text)
    error.headers["Retry-After"] = "1"
    return error
  default: return ServerError(500, text)
  }
}
