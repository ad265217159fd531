import BlobHTTP
import Blobs

/// What `push` was asked to do, checked before anything is sent.
struct PushOptions: Sendable {
  var sources: [BytePath] = []
  var destination: Destination
  /// Files at once; nil: a good number.
  var jobs: Int?
  /// Parts of one file at once; nil: a good number.
  var partsAtOnce: Int?
  /// Bytes; nil: the planner's choice.
  var partSize: Int64?
  var bytesPerSecond: Int64?
  /// Of each request's body.
  var checksum: Digest.Algorithm?
  var verifies = false
  var overwrites = false
  var checks = false
  var isDryRun = false
  var tree = TreeOptions()
  /// What a single source is called at the destination.
  var name: BytePath?
  var connection: ConnectionOptions
  var journal: BytePath
  var output: OutputOptions

  init(_ arguments: Arguments) throws(UsageError) {
    let operands = arguments.operands
    guard operands.count >= 2, let last = operands.last else {
      throw UsageError(operands.isEmpty ? "what, and where to?" : "a source and a destination are wanted")
    }
    sources = Array(operands.dropLast())
    for source in sources { try Self.checkKind(of: source) }
    connection = try ConnectionOptions(arguments)
    try connection.s3.takeObjectOptions(arguments)
    destination = try Destination(last, connection.s3)
    try Self.check(connection, for: destination)
    jobs = try arguments.count("jobs", 1...256)
    partsAtOnce = try arguments.count("parts-at-once", 1...64)
    partSize = try arguments.parsed("part-size", wanted: "a size of at least 1K, like 8M") { text in
      Quantity.size(text).flatMap { $0 >= 1024 ? $0 : nil }
    }
    bytesPerSecond = try arguments.parsed("bwlimit", wanted: "a rate in bytes a second, like 20M", Quantity.rate)
    checksum = try arguments.parsed("checksum", wanted: "one of \(Self.checksums)") { Digest.Algorithm($0) }
    if let checksum, destination.s3 != nil, !Digest.Algorithm.s3.contains(checksum) {
      let known = Digest.Algorithm.s3.map(\.name).joined(separator: ", ")
      throw UsageError("--checksum \(checksum): of these S3 knows \(known)")
    }
    if checksum != nil, ["put", "resumable"].contains(destination.protocolName) {
      throw UsageError("--checksum: only tus carries them; --verify reads back what arrived")
    }
    verifies = arguments.flag("verify")
    overwrites = arguments.flag("overwrite")
    checks = arguments.flag("check")
    isDryRun = arguments.flag("dry-run")
    tree.includesHidden = arguments.flag("hidden")
    tree.filter.includes = arguments.all("include").map { Glob($0) }
    tree.filter.excludes = arguments.all("exclude").map { Glob($0) }
    name = arguments.value("name")
    _ = try connection.requestHeaders(for: destination.endpoint)
    journal = try journalPath(arguments)
    output = try OutputOptions(arguments)
    try checkNames()
  }

  /// S3 has credentials of its own, and what belongs to it means nothing elsewhere.
  private static func check(_ connection: ConnectionOptions, for destination: Destination) throws(UsageError) {
    if destination.s3 != nil {
      if connection.tokenFile != nil || connection.netrcFile != nil {
        throw UsageError("s3:// is signed with keys from the environment or ~/.aws: no --token-file, no --netrc")
      }
    } else if connection.s3 != S3Options() {
      throw UsageError(
        "--endpoint, --region, --profile, --addressing, --storage-class and --metadata are for s3:// only")
    }
  }

  private func checkNames() throws(UsageError) {
    let isSeveral = sources.count > 1
    if isSeveral && !destination.isFolder {
      throw UsageError("\(sources.count) sources cannot all be called \(destination.endpoint): end it with a slash")
    }
    guard let name else { return }
    if isSeveral { throw UsageError("--name is for a single source, and \(sources.count) were given") }
    if name.isEmpty || name.isAbsolute || name.hasTrailingSlash || name.components.contains("..") {
      throw UsageError("--name '\(shown(name))': wanted a name, like IMG_1.jpg or 2024/IMG_1.jpg")
    }
  }

  private static func checkKind(of source: BytePath) throws(UsageError) {
    let kind: String
    if source == "-" {
      kind = "reading standard input"
    } else if source.bytes.starts(with: "sqlite:".utf8) {
      kind = "a database as a source"
    } else if source.bytes.starts(with: "http://".utf8) || source.bytes.starts(with: "https://".utf8) {
      kind = "a URL as a source"
    } else {
      return
    }
    throw UsageError(
      "source '\(shown(source.withoutPassword))': \(kind) is planned, but not there yet; a file of that name is './…'")
  }

  private static let checksums = Digest.Algorithm.all.map(\.name).joined(separator: ", ")

  static let declared: [OptionDeclaration] =
    [
      .value("jobs", "N", short: "j", "files at once"),
      .value("parts-at-once", "N", "parts of one file at once"),
      .value("part-size", "SIZE", "bytes in one request, like 64M"),
      .value("bwlimit", "RATE", "bytes a second for all together, like 20M"),
      .value("checksum", "ALG", "each request carries its digest; tus and s3:// only. sha1, crc32c, sha256, …"),
      .flag("verify", "read back what arrived, or compare digests"),
      .flag("overwrite", "replace other bytes under the same name"),
      .flag("check", "ask the server also for what is done according to the journal"),
      .value("name", "NAME", "what a single source is called at the destination"),
      .value("include", "GLOB", isRepeatable: true, "only files whose path or name matches; repeatable"),
      .value("exclude", "GLOB", isRepeatable: true, "no files or folders whose path or name matches; repeatable"),
      .flag("hidden", "also what begins with a dot"),
      .flag("dry-run", short: "n", "only say what would be sent"),
    ] + ConnectionOptions.declared + S3Options.objectDeclared + [journalOption] + OutputOptions.declared + [
      .planned("layout", "TEMPLATE"), .planned("field", "NAME"), .planned("form", "K=V"), .planned("expect", "STATUS"),
      .planned("reply", "JSONPATH"),
    ]

  static let notes = """
    SOURCE is a file or a folder. A folder DIR arrives as DIR/…; DIR/ and . send their contents. Links to files are
    followed, links to folders are not entered; sockets, pipes, devices and empty folders are left out.
    DESTINATION is s3://bucket/folder/, or http[s]://host/path/ with put+, tus+ or resumable+ before it, or none: then
    the server is asked. With a slash at its end it means "into"; without one, a single file gets exactly that name.
    Sizes: 512KiB, 8M, 1.5G (K, M, G count in 1024s; kB, MB, GB in 1000s). Durations: 30s, 5m, 1h30m.
    Exit status: 0 everything is there, 1 something failed, 2 wrong usage, 3 the destination cannot be reached or
    refuses us, 130 interrupted.
    """
}

/// How much is said, and in which form.
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
