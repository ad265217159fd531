import BlobCrypto
import Blobs

/// The options of `check`: those of a push, and how files are compared.
struct CheckOptions: Sendable {
  let push: PushOptions
  /// Every file is read back.
  let downloads: Bool
  /// Files that were compared before are compared again.
  let isAnew: Bool
  /// The identities open sealed files that are read back.
  let identities: [SealIdentity]
  /// The files of the identities as a shell takes them.
  private let givenIdentities: [String]
  /// The destination as it was given, for messages.
  let place: String
  /// The command that sends what is missing.
  let mending: String
  /// The command line of this check without options that only concern the comparison.
  let again: String

  init(_ arguments: Arguments) throws(UsageError) {
    push = try PushOptions(arguments)
    downloads = arguments.flag("download")
    isAnew = arguments.flag("again")
    if push.readsStandardInput { throw UsageError("standard input can be read only once, and is not compared") }
    identities = push.seal.identities + push.seal.passphraseIdentities
    givenIdentities = arguments.all("identity").map(Self.quoted)
    if push.seal.sealing == nil, arguments.isGiven("identity") {
      throw UsageError("--identity is for sealed files: give the --seal options of the push too")
    }
    if push.seal.sealing != nil, downloads, identities.isEmpty {
      throw UsageError("--download: --identity FILE is wanted, with a private key that opens the sealed files")
    }
    if push.isDryRun { throw UsageError("--dry-run: a check sends nothing anyway") }
    place = shown((arguments.operands.last ?? "").withoutSecrets)
    // Without --verify, a push believes a size. It cannot read back what was sealed before.
    let verify = downloads && push.seal.sealing == nil ? "--verify " : ""
    mending = "fullbore push --check " + verify + Self.line(arguments)
    again = "fullbore check " + Self.line(arguments)
  }

  /// The operands, and the options that decide which files go where, as a shell takes them. Secrets are left out.
  private static func line(_ arguments: Arguments) -> String {
    var words: [String] = []
    for option in taken where !unused.contains(option.name) && arguments.isGiven(option.name) {
      if option.value == nil { words.append("--\(option.name)") }
      for value in arguments.all(option.name) {
        let isSecret = option.mayNameFile && value.bytes.first != UInt8(ascii: "@")
        words += ["--\(option.name)", isSecret ? "…" : quoted(value)]
      }
    }
    return (words + arguments.operands.map { quoted($0.withoutSecrets) }).joined(separator: " ")
  }

  /// A word as a shell takes it.
  private static func quoted(_ word: BytePath) -> String {
    let text = shown(word)
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { plain.contains($0) || $0 >= 0x80 }
    return isPlain ? text : "'\(text.replacing("'", with: "'\\''"))'"
  }
  private static let plain = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@%,".utf8)

  /// The options that read files back, for advice.
  var reading: String {
    let files = givenIdentities.isEmpty && identities.isEmpty && push.seal.sealing != nil ? ["FILE"] : givenIdentities
    return (["--download"] + files.map { "--identity \($0)" }).joined(separator: " ")
  }

  /// The card, or what else the sources are, for messages: `format this card`.
  var formatting: String { isCard ? "format this card" : "delete these files" }

  private var isCard: Bool {
    push.sources.contains { source in
      let path = source.absolute()
      return path.contains(component: "DCIM") || isFolder(path.appending("DCIM"))
    }
  }

  /// Options of a push that are taken, so that its command line can be used, and change nothing here.
  private static let unused: Set = [
    "check", "verify", "overwrite", "dry-run", "json", "quiet", "verbose", "no-times", "checksum", "part-size",
    "parts-at-once", "bwlimit", "jobs", "spool-memory", "spool-dir", "journal",
  ]

  /// The options of a push; each destination is checked by a command of its own.
  private static let taken = PushOptions.declared.filter { !["also", IdentityFiles.declared.name].contains($0.name) }

  /// Options of a push that would change what a check does.
  static let refused = [
    "also": "a check compares with one destination: run one for each, without --also",
    "delete-after-verify": "a check deletes nothing: leave the option out, or run the push again",
    "mhl-at": "a check writes no hash list: leave the option out; 'fullbore check --mhl FILE' compares with one",
    "mhl-hash": "a check writes no hash list: leave the option out; 'fullbore check --mhl FILE' compares with one",
  ]

  static let declared: [OptionDeclaration] =
    [
      .flag("download", "read every file back and compare all bytes, and not only digests"),
      .value("mhl", "FILE", "instead: compare files of this machine with hash lists of ASC MHL; see below"),
      .flag("again", "compare also what was compared before and has not changed since"),
      IdentityFiles.declared,
    ]
    + taken.map { option in
      var option = option
      if option.name == "json" {
        option = .flag("json", "one JSON object a line: destination, checked, notice, error, summary")
      } else if option.name == "verbose" {
        option = .flag(
          "verbose", short: "v", "also every file that is the same, and those that only the destination has")
      } else if ["check", "verify", "overwrite", "dry-run"].contains(option.name) {
        option.group = .unused
      }
      return option
    }

  static let notes = """
    Takes the sources, the destination and the options of a push, and says whether each file that it would send is at
    the destination with the same content. It sends nothing, and changes nothing but its journal. With --also, a push has
    several destinations, and each is checked by a command of its own.
    Content is compared by a digest where the server tells one: a Fullbore server reads the file from its disk for it;
    S3 and Google Cloud Storage tell checksums of what they have stored; Nextcloud tells the checksum that the program
    which sent the file gave it. Where no digest is told only sizes are compared, which proves nothing: the exit status
    is 1 then, and --download reads the files back.
    With --seal or the other options of the push that sealed them, sealed files are compared too: with the digest of the
    ciphertext that the journal kept when it was sent, if the source is still the version that was sent. Where the
    journal has none, or the server tells none, --download --identity FILE reads back and decrypts in memory.
    What was compared stays compared, until the file here or the file there changes (size, date, inode, ETag): an
    interrupted check goes on where it was. --again compares everything, and a Fullbore server reads every file for it.
    A file that an earlier push sent under another name, as with --on-conflict rename, is looked for under that name, as
    this journal knows it.
    What is in the folders of the destination and not here is counted, where the destination lists it, and named with
    -v. It does not change the exit status.
    The last line says whether the files here may be deleted, and what to do if not. Formatting a card also deletes what
    was not compared: hidden files, what --include and --exclude leave out, and what else is on the card. That line
    says so.
    check --mhl FILE [FOLDER] compares the files in FOLDER with the hash list FILE, or with all lists of a history where
    FILE is its ascmhl_chain.xml, its folder ascmhl or the folder beside that. Without FOLDER: the folder beside ascmhl.
    Lists in folders below are followed. Files that no list has count as different, unless the lists ignore their names.
    Exit status: 0 all files are there with the same content; 1 not, or not proved; 2 wrong usage; 3 the destination
    cannot be reached or refuses us; 130 interrupted.
    """
}

private func isFolder(_ path: BytePath) -> Bool { OpenFolder(path, "", follow: true) != nil }
