import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs

// Errors, and whether anything else can be restored after them.
extension UnsealRun {
  /// A server sends the list of a folder as if it was a file, which must not be copied as one.
  func isFolder(_ path: BytePath) async -> Bool {
    var isFolder = false
    // A path that cannot be listed is no folder, or reading it fails later.
    try? await files.list(path) { entries in if !entries.isEmpty { isFolder = true } }
    return isFolder
  }

  func advice(for error: BlobError) -> String? {
    // A folder of this machine is known as one.
    if error.cause is NoAgeFile {
      return only == nil || files is LocalFiles ? nil : "If it is a folder, end it with a slash"
    }
    if error.code == .permission, error.errno == 0 {
      return "-i FILE names another private key, and may be repeated; --seal-passphrase-file FILE has a passphrase"
    }
    return error.readingAdvice
  }

  static func fatal(_ error: BlobError) -> UploadError? {
    if PartialFile.isFull(error.errno) {
      return UploadError(.giveUp, .file, "stopped: nothing else can be written there either", cause: error)
    }
    let given = error.cause as? UploadError
    let cause = (given?.cause ?? error.cause) as? TransportError
    let isFinal = cause.map { [.resolve, .connect, .untrusted, .tls, .proxy].contains($0.code) } ?? false
    guard isFinal || given?.side == .destination else { return nil }
    return UploadError(.giveUp, .destination, "stopped: the source cannot be reached", cause: error)
  }
}

extension UploadError {
  var endsRun: Bool { side == .destination || side == .cancelled }
}
