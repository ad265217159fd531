import BlobCrypto
import BlobUpload
import Blobs

/// For whom the files of a push are sealed before they leave.
struct SealOptions: Sendable {
  /// nil: files are sent as they are.
  let sealing: Sealing?
  private let passphraseFile: BytePath?
  /// Names are sealed too.
  let hasNames: Bool
  /// Private keys that open the indexes of sealed names at the destination.
  let identities: [SealIdentity]

  init() { (sealing, passphraseFile, hasNames, identities) = (nil, nil, false, []) }

  init(_ arguments: Arguments) throws(UsageError) {
    var recipients: [SealRecipient] = []
    for text in arguments.all("seal") { recipients.append(try Self.recipient(text.description, "--seal")) }
    for file in arguments.all("seal-recipients-file") {
      let option = "--seal-recipients-file"
      let lines = try SecretFile.lines(of: file, for: option).filter { !$0.hasPrefix("#") }
      if lines.isEmpty { throw UsageError("\(option): \(shown(file)): no recipient is in it") }
      for line in lines { recipients.append(try Self.recipient(line, "\(option): \(shown(file))")) }
    }
    passphraseFile = arguments.value("seal-passphrase-file")?.absolute()
    if let passphraseFile {
      let option = "--seal-passphrase-file"
      if !recipients.isEmpty {
        throw UsageError("\(option) and keys: a file with a passphrase has no other recipients")
      }
      recipients = [try Self.passphrase(in: passphraseFile, option)]
    }
    sealing = recipients.isEmpty ? nil : try Self.sealing(recipients)
    hasNames = arguments.flag("seal-names")
    if hasNames, sealing == nil {
      throw UsageError("--seal-names: for whom? --seal, --seal-recipients-file or --seal-passphrase-file is wanted too")
    }
    identities = try IdentityFiles.identities(arguments)
    if !hasNames, !identities.isEmpty, !arguments.declares("download") {
      throw UsageError("--identity is for --seal-names, which reads the key of the names with it")
    }
  }

  /// Checks the public keys that are given, and reads no file.
  static func checkKeys(_ arguments: Arguments) throws(UsageError) {
    for text in arguments.all("seal") { _ = try recipient(text.description, "--seal") }
  }

  /// A key that is given twice counts once.
  private static func sealing(_ recipients: [SealRecipient]) throws(UsageError) -> Sealing {
    var seen: Set<SealRecipient> = []
    do {
      return try Sealing(for: recipients.filter { seen.insert($0).inserted })
    } catch {
      throw UsageError("--seal: \(error.message)")
    }
  }

  private static func recipient(_ text: String, _ option: String) throws(UsageError) -> SealRecipient {
    if text.hasPrefix("ssh-"), !text.contains(" ") {
      throw UsageError("\(option): the key has blanks in it: quote it, like --seal \"$(cat id_ed25519.pub)\"")
    }
    // The text may be a private key by mistake, so the message does not repeat it.
    do { return try SealRecipient(text) } catch { throw UsageError("\(option): \(error.message)") }
  }

  private static func passphrase(in file: BytePath, _ option: String) throws(UsageError) -> SealRecipient {
    let lines = try SecretFile.text(of: file, for: option).split(
      omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    do { return try .passphrase(String(lines.first ?? "")) } catch {
      throw UsageError("\(option): \(shown(file)): \(error.message)")
    }
  }

  /// The passphrase opens what it has sealed; empty: there is none.
  var passphraseIdentities: [SealIdentity] { sealing?.recipients.compactMap(\.passphraseIdentity) ?? [] }

  /// The identity of the passphrase that is given; nil: none is.
  static func passphraseIdentity(_ arguments: Arguments) throws(UsageError) -> SealIdentity? {
    guard let file = arguments.value("seal-passphrase-file") else { return nil }
    return try passphrase(in: file, "--seal-passphrase-file").passphraseIdentity
  }

  /// The recipients as the journal keeps them: public keys, and where a passphrase is found.
  var journaled: JournalSeal? {
    guard let sealing else { return nil }
    let keys = sealing.recipients.filter { !$0.isPassphrase }.map(\.description)
    return JournalSeal(recipients: keys, passphraseFile: passphraseFile?.description, names: hasNames)
  }

  /// For whom an earlier push has sealed its files, with the passphrase read again.
  static func sealing(_ kept: JournalSeal?) throws(UploadError) -> Sealing? {
    guard let kept else { return nil }
    do throws(UsageError) {
      var recipients: [SealRecipient] = []
      for text in kept.recipients { recipients.append(try recipient(text, "the journal")) }
      if let file = kept.passphraseFile {
        recipients.append(try passphrase(in: BytePath(file), "--seal-passphrase-file"))
      }
      return try sealing(recipients)
    } catch {
      throw UploadError(.giveUp, .file, error.message)
    }
  }

  /// A sealed file's name ends in .age, and the name in a URL with a query, such as a signature, cannot be changed.
  func check(_ destination: Destination) throws(UsageError) {
    if hasNames, !destination.isFolder {
      throw UsageError("--seal-names: the destination ends in a name, which would be seen: end it with a slash")
    }
    guard sealing != nil, !destination.isFolder, destination.endpoint.query != nil,
      !Sealing.isName(destination.endpoint.lastComponent)
    else { return }
    throw UsageError(
      "--seal: the name of a sealed file ends in .age, and that in the destination, which has a query, does not")
  }

  static let declared: [OptionDeclaration] =
    [
      .value(
        "seal", "RECIPIENT", isRepeatable: true,
        "encrypt for age1… or ssh-ed25519 …, so that only 'age -d' reads it; repeatable")
    ]
    + [
      .value(
        "seal-recipients-file", "FILE", isRepeatable: true,
        "the same for each line of a file; # begins a comment; repeatable"),
      .value(
        "seal-passphrase-file", "FILE", "encrypt with the passphrase in a file; a second and 256M for each file sent"),
      .flag("seal-names", "hide names of files and folders too; 'fullbore unseal' restores them"),
      IdentityFiles.declared,
    ].inGroup(.sealing)
}

extension Sealing {
  /// The name of a sealed file at the destination ends in `.age`. A name that already ends in `.age` is kept if the
  /// user has chosen it for the file.
  static func name(_ arrival: BytePath, isChosen: Bool) -> BytePath {
    if isChosen, isName(arrival.bytes) { return arrival }
    return BytePath(arrival.bytes + ending.bytes)
  }
}
