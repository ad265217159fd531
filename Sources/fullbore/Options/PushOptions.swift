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
  /// For whom files are sealed.
  var seal = SealOptions()
  /// Digest algorithm for each request's body; nil: no digests.
  var checksum: Digest.Algorithm?
  var verifies = false
  /// The hash lists to write; nil: none.
  var hashLists: HashListOptions?
  var onConflict = NameConflict.fail
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
  private(set) var edited = EditedPhotos()
  /// JPEG quality of rendered edits.
  var editQuality = 93
  private(set) var renderer = RendererLocator()
  var connection: ConnectionOptions
  /// A file of this process only, if there is a queue.
  var journal: BytePath
  /// The URL of the queue that several machines share; nil: there is none. It may have a password.
  private(set) var queue: String?
  var output: OutputOptions
  /// Notices for the user about the use of a place.
  let notices: [String]
  /// Further destinations of the same sources, each with its own place.
  var also: [PushOptions] = []
  /// A short name for messages, if there are several destinations.
  var title: String
  /// The limit that all destinations share; nil: each has its own, or none.
  var limiter: RateLimiter?

  /// `sharing`: the journal may be a queue of several machines.
  init(_ arguments: Arguments, sharing: Bool = false) throws(UsageError) {
    let arguments = try arguments.withPlace()
    self = try arguments.locating { () throws(UsageError) in try PushOptions(to: arguments, sharing: sharing) }
    if !arguments.declares("also") { return }
    also = try arguments.all("also").map { given throws(UsageError) in
      do throws(UsageError) {
        let further = try arguments.further(given)
        return try further.locating { () throws(UsageError) in try PushOptions(to: further, beside: arguments) }
      } catch {
        throw UsageError("--also \(shown(given.withoutSecrets)): \(error.message)")
      }
    }
    if !also.isEmpty { try becomeSeveral(arguments) }
  }

  /// The options for one destination, whose place is in the arguments already.
  private init(to arguments: Arguments, beside first: Arguments? = nil, sharing: Bool = false) throws(UsageError) {
    if let first { try Self.check(arguments, choosesAs: first) }
    notices = arguments.notices
    let operands = arguments.operands
    // An option without its value uses the first source as its value.
    pace = try PaceOptions(arguments)
    // The words of a key that was not quoted are operands, about which other errors would say less.
    seal = try SealOptions(arguments)
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
    if arguments.isFurther { try connection.keepNetrc(ifNaming: destination.endpoint.host) }
    title = destination.title
    if let given = arguments.destinationWithPlace {
      title = String(decoding: given.bytes.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
    }
    try Self.check(connection, for: destination)
    partSize = try Self.partSize(arguments)
    checksum = try Self.checksum(arguments)
    if let checksum { try Self.check(checksum, for: destination) }
    verifies = arguments.flag("verify")
    checks = arguments.flag("check")
    if seal.sealing != nil, checks, verifies {
      throw UsageError(
        "--check --verify: the key of a file that was sealed before is gone, so its bytes cannot be compared. --check alone "
          + "compares lengths, and --verify alone what this push sends")
    }
    omitsTimes = arguments.flag("no-times")
    isDryRun = arguments.flag("dry-run")
    tree.includesHidden = arguments.flag("hidden")
    tree.filter = try GlobFilter(arguments, sources)
    name = arguments.value("name")
    if let memory = try Self.spoolMemory(arguments) { spool.memory = memory }
    spool.folder = arguments.value("spool-dir")?.absolute()
    form = try FormOptions(arguments)
    if !destination.isForm, let name = ["field", "form", "expect", "reply"].first(where: arguments.isGiven) {
      throw UsageError("--\(name): only form+ destinations take it")
    }
    (layout, edits) = try Self.gallery(arguments)
    onConflict = try NameConflict(arguments, counts: layout?.has(.counter) == true)
    tree.mostPhotos = onConflict == .rename ? PhotoGroups.most : TreeOptions.mostPhotos
    editQuality = try Self.editQuality(arguments) ?? editQuality
    _ = try connection.requestHeaders(for: isDryRun ? nil : destination.endpoint)
    queue = sharing ? try sharedQueue(arguments) : nil
    journal = queue == nil ? try journalPath(arguments) : QueueSession.journalPath
    tree.journal = JournalFiles(journal)
    output = try OutputOptions(arguments)
    try checkNames()
  }

  /// Files at the destination are replaced.
  var overwrites: Bool { onConflict == .overwrite }

  /// Whether two files may get the same name: files of one folder with their own names cannot, unless the receiver is
  /// told their last components only, or files get other names.
  var namesMayMeet: Bool {
    onConflict == .rename || sources.count + urls.count + databases.count > 1 || layout != nil || !databases.isEmpty
      || edits == .current
      || edits == .both || dropsFolders
  }

  /// See `UploadTraits.dropsFolders`.
  var dropsFolders: Bool { destination.isForm && (try? form.post())?.traits.dropsFolders == true }

  /// The user has given the only source its name at the destination.
  var hasChosenName: Bool { name != nil || !destination.isFolder }

  /// The path at the destination of a file that would arrive at `arrival` if it were not sealed.
  func sealedName(_ arrival: BytePath) -> BytePath {
    seal.sealing == nil ? arrival : Sealing.name(arrival, isChosen: hasChosenName)
  }

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
    } else if connection.s3.areGiven {
      throw UsageError(
        "--endpoint, --region, --profile, --addressing, --storage-class, --sse and --metadata are for s3:// only")
    }
  }

  private func checkNames() throws(UsageError) {
    try seal.check(destination)
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

  static let declared: [OptionDeclaration] =
    [
      .value(
        "also", "DESTINATION", isRepeatable: true,
        "send everything there as well; credentials from its place; repeatable"),
      .flag("check", "ask the server for what is done: by digest where it tells one, else by length"),
      .flag("verify", "compare what arrived: by a digest that a Fullbore server makes anew, else read back"),
      .flag("overwrite", "replace other bytes under the same name: --on-conflict overwrite"),
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
      .value(
        "on-conflict", "fail|rename|skip|overwrite",
        "of a name that another file has, here or there; fail when not given"),
      .flag("hidden", "also what begins with a dot"),
      .value("name", "NAME", "what a single source is called at the destination"),
      .flag("no-times", "do not tell the server when files were last written"),
      .value("edits", "current|original|both", "of edited photos; without it all files go as they are"),
      .value("edit-quality", "N", "of edits that are rendered on the way, as JPEG has it; 93 when not given"),
    ].inGroup(.choice)
    + [
      .value(
        "checksum", "ALG", "each request carries a digest for the server: sha256, crc32c …; s3: crc32c anyway")
    ].inGroup(.checks) + SealOptions.declared + PaceOptions.declared
    + [
      .value("part-size", "SIZE", "bytes in one request, like 64M; when not given 8M to s3://, else all in one")
    ].inGroup(.pace) + ConnectionOptions.declared
    + [
      .value(
        "spool-memory", "SIZE", "bytes of it held to be sent again; 12M when not given, to s3:// 32M"),
      .value("spool-dir", "FOLDER", "where what does not fit is held; without it nothing is written to disk"),
    ].inGroup(.pipes) + FormOptions.declared + S3Options.objectDeclared + [sharedJournalOption].inGroup(.output)
}
