import BlobCrypto
import BlobUpload
import Blobs
import Platform

/// Two different files of one push with the same destination path. Sending both would lose one of them.
struct NameClash: Error, Hashable {
  /// The second file, which is not sent.
  private(set) var identity: BytePath
  /// The file that has the name.
  let other: BytePath
  /// See `UploadTraits.dropsFolders`.
  let dropsFolders: Bool
  /// The other file was deleted here once it was proved at the destination.
  private var isOnlyCopy = false
  /// The file of the same photo whose name is taken; nil: the second file itself.
  private(set) var member: BytePath?

  var message: String {
    let why = member.map { ", because \($0) of the same photo is not" } ?? ""
    // Another file may have the path of a deleted one.
    let taken = isOnlyCopy && (member ?? identity) == other ? "an earlier file of this name" : "\(other)"
    return "\(identity) is not sent\(why): \(taken), \(isOnlyCopy ? Self.onlyCopy : Self.reason)"
  }

  /// The clash for another file of the same photo, which is not sent either.
  func forOther(_ file: BytePath) -> NameClash {
    var clash = self
    (clash.identity, clash.member) = (file, identity)
    return clash
  }

  private static let reason = "which is another file, has that name in this push"
  private static let onlyCopy =
    "which was deleted here once the destination had it, has that name there, and --overwrite would replace its only copy"

  /// Advice for a clash of which only the message is stored; nil if it is another message.
  static func hint(for message: String) -> String? {
    let isClash = message.contains(reason) || message.contains(onlyCopy)
    return isClash ? "--on-conflict rename sends it under a name with a number" : nil
  }

  /// The failure of the file. `isSkipped`: the user wants files whose names are taken to be left out.
  func error(isSkipped: Bool = false) -> UploadError {
    UploadError(.giveUp, .file, message, status: isSkipped ? 409 : nil, cause: self)
  }

  var advice: String {
    if dropsFolders {
      return
        "A form has a file's name, and not its folders: a field like --form 'path={path}' gives those too, and with "
        + "--reply the receiver says where each file is; or push each folder to a destination of its own"
    }
    if identity.hasScheme("sqlite"), other.hasScheme("sqlite") {
      return "Rows need names that differ: name=COLUMN says which column has them; or give each table a destination of "
        + "its own"
    }
    return
      "--on-conflict rename sends it under a name with a number. Or give each source a destination of its own, or, where folders have a slash at their ends, give folders without a "
      + "slash, so that each arrives under its own name; a --layout must have {folder} in it for that, like "
      + "'{year}/{folder}/{name}'"
  }

  /// The clash with a file that was deleted here, of which the destination may have the only copy. Without `--overwrite`, the
  /// server compares both.
  init(of identity: BytePath, withOnlyCopyOf other: BytePath, dropsFolders: Bool) {
    (self.identity, self.other, self.dropsFolders, isOnlyCopy) = (identity, other, dropsFolders, true)
  }

  /// nil if both are the same file or have the same content, or if `other` does not exist any more and `replaces` is false:
  /// then the server refuses other bytes. Files that cannot be compared, and sources that are not local files, count as
  /// different. Reads both files if their lengths are equal. `replaces`: what is sent replaces what the server has.
  init?(of identity: BytePath, with other: BytePath, dropsFolders: Bool, replaces: Bool) async {
    if identity == other { return nil }
    switch await SourceReads().run({
      haveSameBytes(identity, other, ifOtherIsGone: !replaces, $0, noteRead: $1)
    }) {
    case .done(true), .cancelled: return nil
    case .done(false), .stuck:
      (self.identity, self.other, self.dropsFolders) = (identity, other, dropsFolders)
    }
  }
}

/// Whether both are the same file or have the same content; `ifOtherIsGone` if the second does not exist any more.
/// Sources that are not local files count as different. This call blocks.
private func haveSameBytes(
  _ path: BytePath, _ other: BytePath, ifOtherIsGone: Bool, _ cancel: Cancellation, noteRead: () -> Void
) -> Bool {
  guard path.isAbsolute, other.isAbsolute else { return false }
  var (first, second) = (stat(), stat())
  if other.status(&second) != 0 { return ifOtherIsGone && (errno == ENOENT || errno == ENOTDIR) }
  guard path.status(&first) == 0 else { return false }
  if first.st_dev == second.st_dev, first.st_ino == second.st_ino { return true }
  guard first.st_size == second.st_size else { return false }
  do throws(BlobError) {
    let digests = try [path, other].map { path throws(BlobError) in
      try Digest.reading(FileSource(path), .sha256, cancel) { _ in noteRead() }.value()
    }
    return digests[0] == digests[1]
  } catch {
    return false
  }
}
