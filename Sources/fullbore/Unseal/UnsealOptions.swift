import BlobCrypto
import BlobUpload
import Blobs
import Platform

/// The options of `unseal`, checked before anything is read.
struct UnsealOptions: Sendable {
  enum Source: Sendable {
    /// A file or a folder of this machine.
    case local(BytePath)
    case remote(Destination)
  }

  let source: Source
  let destination: BytePath
  let identities: [SealIdentity]
  let overwrites: Bool
  let copiesUnsealed: Bool
  /// Files at once.
  let jobs: Int
  let connection: ConnectionOptions
  let output: OutputOptions
  /// Notices for the user about the use of a place.
  let notices: [String]

  init(_ arguments: Arguments) throws(UsageError) {
    guard arguments.operands.count == 2 else {
      throw UsageError("one source and one folder of this machine are wanted: unseal SOURCE FOLDER")
    }
    var arguments = arguments
    let given = arguments.operands[0]
    var url = given.bytes.firstRange(of: Array("://".utf8)) == nil ? nil : given
    if given.hasScheme("file") { url = nil }
    let name = given.bytes.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") }
    let hasColon = name.count < given.bytes.count && given.bytes[name.count] == UInt8(ascii: ":")
    if url == nil, hasColon, !given.hasScheme("file"), let (place, found) = try Places.destination(given) {
      arguments.use(place)
      url = found
    }
    connection = try ConnectionOptions(arguments)
    if let url {
      let destination = try Destination(url, connection.s3)
      if destination.isForm {
        throw UsageError("the receiver of a form gives no files back: name the folder by its own URL")
      }
      source = .remote(destination)
    } else {
      source = .local(try given.withoutFileScheme())
    }
    let target = arguments.operands[1]
    if target.bytes.firstRange(of: Array("://".utf8)) != nil {
      throw UsageError("'\(shown(target.withoutSecrets))': files are unsealed into a folder of this machine")
    }
    destination = target
    let passphrase = try SealOptions.passphraseIdentity(arguments)
    identities = try IdentityFiles.identities(arguments) + (passphrase.map { [$0] } ?? [])
    if identities.isEmpty {
      throw UsageError("--identity FILE, the private key, is wanted; or --seal-passphrase-file FILE")
    }
    overwrites = arguments.flag("overwrite")
    copiesUnsealed = arguments.flag("copy-unsealed")
    jobs = try arguments.count("jobs", 1...64) ?? 8
    output = try OutputOptions(arguments)
    notices = arguments.notices
    if case .local(let path) = source { try Self.check(path, destination) }
  }

  /// Restored files would be found as sources.
  private static func check(_ source: BytePath, _ destination: BytePath) throws(UsageError) {
    guard let from = source.absolute().resolved() else {
      throw UsageError("'\(shown(source))': \(String(cString: strerror(errno)))")
    }
    guard let to = destination.absolute().resolved() else { return }
    if DestinationChoice.isAtOrBelow(to.bytes, from.bytes) {
      throw UsageError("'\(shown(destination))' is in the folder that is to be unsealed: name another folder")
    }
  }

  static let declared: [OptionDeclaration] =
    [
      IdentityFiles.declared,
      .value("seal-passphrase-file", "FILE", "the passphrase of the files, in the first line of a file"),
      .flag("overwrite", "replace files of the folder that have other bytes"),
      .flag("copy-unsealed", "copy files that are not sealed as they are; otherwise they are named and left"),
      .value("jobs", "N", short: "j", "files at once; 8 when not given"),
      .flag("json", "one JSON object a line: done, failed, notice, error, summary"),
      .flag("quiet", short: "q", "only failures"),
      .flag("verbose", short: "v", "also every file that was there already"),
    ] + ConnectionOptions.declared

  static let notes = """
    SOURCE is a folder or file of this machine, a folder or file of a Fullbore server or a WebDAV server, a bucket or
    folder in S3, or a place with a folder in it, as in nas:2026/. A URL of a folder ends in a slash.
    Each file is opened and written under its name without .age, with its folders and its time. It gets its name once all
    of it is on the disk and every byte was checked: a file that was changed or cut is named, and nothing of it appears.
    A file that is there with the same bytes counts as done. One with other bytes is named and stays, unless --overwrite
    is given. Nothing is written outside the folder, and no symbolic link in it is followed.
    Run the same command again after an interruption: what is restored stays, and an unfinished file goes on where it was.
    For this there is a folder .fullbore-unseal in the destination, until every file is restored. It has unsealed bytes
    in it, and may be deleted.
    What --seal-names has hidden gets its name and time from the indexes in the folder that was pushed to. A file that no
    index names keeps its opaque name; it is named, and so is a file that an index names and that is not there.
    Files of a Fullbore server whose names begin with a dot are not listed, and so not found.
    Exit status: 0 all files are restored; 1 not all, each is named; 2 wrong usage; 3 the source cannot be reached or
    refuses us; 130 interrupted.
    """
}
