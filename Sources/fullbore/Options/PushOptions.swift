import BlobCrypto
import BlobHTTP
import BlobMedia
import BlobUpload
import Blobs

/// The options of `push`, checked before anything is sent.
struct PushOptions: Sendable {
  /// Files and folders.
  var sources: [BytePath] = []
  /// Every source as the user gave it, without secrets, and absolute if it is a path.
  var given: [BytePath] = []
  /// Files at URLs; they are sent first.
  var urls: [URLSource] = []
  var databases: [DatabaseSource] = []
  var destination: Destination
  var pace: PaceOptions
  /// Part size in bytes; nil: the planner decides.
  var partSize: Int64?
  /// Digest algorithm for each request's body; nil: no digests.
  var checksum: Digest.Algorithm?
  var verifies = false
  var overwrites = false
  var checks = false
  /// Modification times are not sent to the server.
  var omitsTimes = false
  var isDryRun = false
  var tree = TreeOptions()
  /// The name of a single source at the destination.
  var name: BytePath?
  /// Spool settings for sequential sources.
  var spool = SpoolOptions()
  /// Options for posting forms.
  var form: FormOptions
  /// The paths of files below the destination; nil: the same as below their source.
  var layout: Layout?
  /// The versions of edited photos to send; nil: every file is sent as it is, and no edit is rendered.
  var edits: GalleryEdits?
  let edited = EditedPhotos()
  /// JPEG quality of rendered edits.
  var editQuality = 93
  let renderer = RendererLocator()
  var connection: ConnectionOptions
  var journal: BytePath
  var output: OutputOptions

  init(_ arguments: Arguments) throws(UsageError) {
    let arguments = try arguments.withPlace()
    let operands = arguments.operands
    // An option without its value uses the first source as its value.
    pace = try PaceOptions(arguments)
    guard operands.count >= 2, let last = operands.last else {
      throw UsageError(operands.isEmpty ? "what, and where to?" : "a source and a destination are wanted")
    }
    for source in operands.dropLast() {
      if let url = try URLSource(source) {
        urls.append(url)
        given.append(source.withoutSecrets)
      } else if let database = try DatabaseSource(source) {
        databases.append(database)
        given.append(source)
      } else {
        let path = try source.withoutFileScheme()
        sources.append(path)
        given.append(path == "-" ? path : path.absolute())
      }
    }
    connection = try ConnectionOptions(arguments)
    try connection.s3.takeObjectOptions(arguments)
    destination = try Destination(last, connection.s3)
    try Self.check(connection, for: destination)
    partSize = try arguments.parsed("part-size", wanted: "a size of at least 1K, like 8M") { text in
      Quantity.size(text).flatMap { $0 >= 1024 ? $0 : nil }
    }
    checksum = try arguments.parsed("checksum", wanted: "one of \(Self.checksums)") { Digest.Algorithm($0) }
    if let checksum { try Self.check(checksum, for: destination) }
    verifies = arguments.flag("verify")
    overwrites = arguments.flag("overwrite")
    checks = arguments.flag("check")
    omitsTimes = arguments.flag("no-times")
    isDryRun = arguments.flag("dry-run")
    tree.includesHidden = arguments.flag("hidden")
    tree.filter = try GlobFilter(arguments, sources)
    name = arguments.value("name")
    if let memory = try arguments.parsed(
      "spool-memory", wanted: "a size from 128K to 64G, like 32M",
      { text in Quantity.size(text).flatMap { 128 << 10...64 << 30 ~= $0 ? Int($0) : nil } })
    {
      spool.memory = memory
    }
    spool.folder = arguments.value("spool-dir")?.absolute()
    form = try FormOptions(arguments)
    if !form.isEmpty, !destination.isForm {
      throw UsageError("--field, --form, --expect and --reply are for form+ destinations")
    }
    (layout, edits) = try Self.gallery(arguments)
    editQuality = try arguments.count("edit-quality", 1...100) ?? editQuality
    _ = try connection.requestHeaders(for: isDryRun ? nil : destination.endpoint)
    journal = try journalPath(arguments)
    tree.journal = JournalFiles(journal)
    output = try OutputOptions(arguments)
    try checkNames()
  }

  /// Whether two files may get the same name: files of one folder with their own names cannot, unless the receiver is
  /// told their last components only.
  var namesMayMeet: Bool {
    sources.count + urls.count + databases.count > 1 || layout != nil || !databases.isEmpty || edits == .current
      || edits == .both || dropsFolders
  }

  /// See `UploadTraits.dropsFolders`.
  var dropsFolders: Bool { destination.isForm && (try? form.post())?.traits.dropsFolders == true }

  /// The only source is `-`.
  var readsStandardInput: Bool { sources == ["-"] }

  /// Every source is a local file or folder.
  var hasOnlyFiles: Bool { urls.isEmpty && databases.isEmpty && !readsStandardInput }

  private static func check(_ checksum: Digest.Algorithm, for destination: Destination) throws(UsageError) {
    guard let name = destination.protocolName else { return }
    let carried = destination.traits?.checksums ?? Digest.Algorithm.s3
    if carried.contains(checksum) { return }
    let known = carried.isEmpty ? "none" : "only \(carried.map(\.name).sorted().joined(separator: ", "))"
    throw UsageError("--checksum \(checksum): \(name) carries \(known); --verify reads back what arrived")
  }

  /// S3 has its own credentials, and the S3 options do not apply to other destinations.
  private static func check(_ connection: ConnectionOptions, for destination: Destination) throws(UsageError) {
    if destination.s3 != nil {
      if connection.hasCredentialsOfHTTP {
        throw UsageError("s3:// is signed with keys from the environment or ~/.aws: no --token-file, no --netrc")
      }
    } else if connection.s3 != S3Options() {
      throw UsageError(
        "--endpoint, --region, --profile, --addressing, --storage-class, --sse and --metadata are for s3:// only")
    }
  }

  private func checkNames() throws(UsageError) {
    let count = sources.count + urls.count + databases.count
    let isSeveral = count > 1
    if sources.contains("-") {
      if OpenFiles.standardInputIsClosed { throw UsageError("standard input is closed: nothing can be read from it") }
      if isSeveral { throw UsageError("'-' is standard input, and stands alone; a file of that name is './-'") }
      if layout != nil { throw UsageError("--layout is not for standard input: leave it out") }
      if destination.isFolder && name == nil {
        throw UsageError("standard input needs a name: --name NAME, or a destination that ends in one")
      }
    }
    if verifies, destination.isForm, !destination.endpoint.path.hasSuffix("/"), form.reply == nil {
      throw UsageError(
        "--verify: it is not known where what is posted to \(destination.endpoint) can be read back: --reply tells where in "
          + "its answer the receiver says so; or end the URL with a slash where the files are below it")
    }
    if let table = databases.first(where: { $0.selection == .every })?.table, !destination.isFolder || name != nil {
      throw UsageError(
        "'\(table.table)' has many rows, which cannot all have one name: end the destination with a slash")
    }
    if isSeveral && !destination.isFolder {
      throw UsageError("\(count) sources cannot all be called \(destination.endpoint): end it with a slash")
    }
    if let url = urls.first(where: { !$0.hasName }), name == nil, destination.isFolder {
      throw UsageError("source '\(url.url)': its path does not end in a name: give it one with --name")
    }
    if let table = databases.first(where: { $0.isChunks })?.table, name == nil, destination.isFolder {
      throw UsageError("the chunks in '\(table.table)' are one file, which needs a name: --name NAME")
    }
    if layout != nil, name != nil || !destination.isFolder {
      throw UsageError("--layout names every file: leave out --name, and end the destination with a slash")
    }
    guard let name else { return }
    // The URL at which tus uploads are created may end in any component.
    if !destination.isFolder, destination.traits?.namesInFields != true {
      throw UsageError(
        "--name '\(shown(name))': the destination ends in a name already, '\(shown(BytePath(destination.endpoint.lastComponent)))': "
          + "leave out --name, or end the destination with a slash")
    }
    if isSeveral { throw UsageError("--name is for a single source, and \(count) were given") }
    if !name.isNameBelow {
      throw UsageError("--name '\(shown(name))': wanted a name, like IMG_1.jpg or 2024/IMG_1.jpg")
    }
  }

  private static let checksums = Digest.Algorithm.all.map(\.name).joined(separator: ", ")

  static let declared: [OptionDeclaration] =
    [
      .flag("check", "ask the server for what is done: by digest where it tells one, else by length"),
      .flag("verify", "read back what arrived, or compare digests"),
      .flag("overwrite", "replace other bytes under the same name"),
      .value(
        "layout", "TEMPLATE", "where photos go, by when they were taken, like '{year}/{month}/{name}'"),
      .value(
        "include", "GLOB", isRepeatable: true, "only files whose path or name matches, or all in DIR/; repeatable"),
      .value(
        "exclude", "GLOB", isRepeatable: true,
        "no files or folders whose path or name matches, nor a folder DIR/; repeatable"),
      .flag("dry-run", short: "n", "only name the chosen files, also what is sent already; asks no server, no journal"),
    ] + OutputOptions.declared
    + [
      .flag("hidden", "also what begins with a dot"),
      .value("name", "NAME", "what a single source is called at the destination"),
      .flag("no-times", "do not tell the server when files were last written"),
      .value("edits", "current|original|both", "of edited photos; without it all files go as they are"),
      .value("edit-quality", "N", "of edits that are rendered on the way, as JPEG has it; 93 when not given"),
    ].inGroup(.choice)
    + [
      .value(
        "checksum", "ALG", "each request carries its digest: sha256, sha512; tus: crc32c too; s3: crc32c anyway")
    ].inGroup(.checks) + PaceOptions.declared
    + [
      .value("part-size", "SIZE", "bytes in one request, like 64M; when not given 8M to s3://, else all in one")
    ].inGroup(.pace) + ConnectionOptions.declared
    + [
      .value(
        "spool-memory", "SIZE", "bytes of it held to be sent again; 12M when not given, to s3:// 32M"),
      .value("spool-dir", "FOLDER", "where what does not fit is held; without it nothing is written to disk"),
    ].inGroup(.pipes) + FormOptions.declared + S3Options.objectDeclared + [journalOption].inGroup(.output)

  static let examples: [CommandDeclaration.Example] = [
    .init("push DCIM/ http://nas:8080/2026/ --token-file token", "what is in DCIM, into 2026; run again, it goes on"),
    .init(
      "push DCIM/ dav+https://cloud.example/remote.php/dav/files/anna/ --netrc",
      "to Nextcloud, or another WebDAV server"),
    .init("push holiday.mov s3://media/2026/", "to S3; keys from the environment or ~/.aws"),
    .init("push - http://nas:8080/albums.tar", "standard input, under that name"),
    .init("push DCIM/ nas:2026/", "to the place 'nas', which 'fullbore places add' has made"),
  ]

  static let notes = """
    SOURCE is a file, a folder, either of them as file:///path, http[s]://host/path, which is sent on as it comes, or -
    for standard input, which --name or the destination gives a name.
    sqlite:FILE?table=T&column=C[&name=COLUMN][&version=COLUMN][&where=SQL][&row=N] are the BLOBs of a database; with
    &chunks=COLUMN its rows are one file, in the order of that column. Into a destination, a folder DIR arrives as
    DIR/…; DIR/ and . send their contents. Links to files are followed, links to folders are not entered; sockets,
    pipes, devices and empty folders are left out.
    Rows of a database that are NULL there are left out. A folder or table with nothing to send is a failure (a card may
    not be mounted), unless files were sent from there before; with --check it always is one. So it is when --include
    and --exclude leave nothing of all that was found.
    GLOB is a pattern of the shell's kind: * (slashes too), ?, [a-z], and \\ before a character that means itself. It is
    compared with a file's or folder's name, and with its path as it arrives. /x and ./x are only what is called x at the
    top of a source; x/ is a folder, and all below it. Files that are given are compared too, folders are not.
    The fields of --layout: {year} {month} {day} {hour} {minute} {second} of when a picture was taken; {name} of the
    file, or {stem} and {ext} of that; {folder}, the folders in which it would arrive without a layout.
    DESTINATION is s3://bucket/folder/, gs://bucket/folder/ with --token-file, or http[s]://host/path/ with put+, tus+,
    resumable+, dav+ or form+ before it, or none: then the server is asked. With a slash at its end it means "into";
    without one, a single source arrives as exactly that name: of a folder DIR sent to …/2026, DIR/a is …/2026/a, and
    sent to …/2026/ it is …/2026/DIR/a. Forms are always posted to the URL as it is, under the file's own name.
    NAME:folder/ is that folder at a place of 'fullbore places', with its URL, its credentials and its options. What is
    given here wins over those, and any credentials given here over all of its own. The folder is written as it is called,
    without %20 and the like.
    A file counts as done before when the journal says that a file of the same path, size, modification time, inode and
    change time was sent to this destination. It is not sent again, and the server is not asked; --check asks whether it
    still has it, and --check --verify reads it back and compares. Where only inode and change time differ, a file of a
    card or a network drive is read and compared with the checksum that was kept when it was sent; a file on a disk, of
    which none is kept, is sent again. What the server has already with the same bytes is not sent again. The query of
    DESTINATION, the fields of a form, and the name of the user that --netrc or 'Authorization: Basic' in a --header gives
    belong to the destination: with others a file is sent there too. A bearer token, which is renewed, does not.
    A file with credentials (--token-file, --netrc, --header @FILE) is read again where the server answers 401. With other
    ones in it, of the same user, the push goes on; so a token may be renewed while it is used: best by renaming a file.
    A modification time after 2262-04-11 arrives as that date, and one before 1677-09-21 as that one.
    Sizes: 512KiB, 8M, 1.5G (K, M, G count in 1024s; kB, MB, GB in 1000s). Durations: 30s, 5m, 1h30m.
    Exit status: 0 everything is there, 1 something failed, 2 wrong usage, 3 the destination cannot be reached or
    refuses us, 130 interrupted.
    """
}

/// The amount and the format of output.
struct OutputOptions: Sendable, Hashable {
  var isJSON = false
  var isQuiet = false
  var isVerbose = false

  init(isJSON: Bool = false, isQuiet: Bool = false, isVerbose: Bool = false) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
  }

  init(_ arguments: Arguments) throws(UsageError) {
    isJSON = arguments.flag("json")
    isQuiet = arguments.flag("quiet")
    isVerbose = arguments.flag("verbose")
    if isQuiet && isVerbose { throw UsageError("--quiet and --verbose: which of the two?") }
    if isQuiet && isJSON { throw UsageError("--quiet and --json: which of the two?") }
  }

  static let declared: [OptionDeclaration] = [
    .flag("json", "one JSON object a line: start, progress, done, failed, summary"),
    .flag("quiet", short: "q", "only failures"),
    .flag("verbose", short: "v", "also every file that needed nothing, and why others are left out"),
  ]
}
