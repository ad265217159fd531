import BlobHTTP
import BlobMedia
import BlobServer
import BlobServerS3
import Blobs
import Platform

/// Receives uploads into a folder until it is stopped.
struct ServeCommand: Command {
  static let declaration = CommandDeclaration(
    name: "serve", synopsis: "serve FOLDER|--to s3://BUCKET/PREFIX/",
    summary: "receive uploads into FOLDER or a bucket",
    options: ShareOptions.declared + [
      .value(
        "listen", "ADDRESS:PORT",
        "else 127.0.0.1:8080, with --share 0.0.0.0:8080 to 8099; port 0 picks a free one"
      ),
      .value(
        "token-file", "FILE", "what every request must present, in a file; a must for other machines, but with --share"),
      .value(
        "tls", "self", "speak HTTPS with a certificate of its own, of which browsers warn"),
      .flag("quiet", short: "q", "print nothing but the URL"),
    ]
      + [
        .value("max-size", "SIZE", "of one upload, like 8G; no limit when not given"),
        .value(
          "max-total", "SIZE",
          "of all files in FOLDER, with what unfinished uploads are to have; else no limit"
        ),
        .value(
          "expire", "DURATION", "how long an unfinished upload is kept after its last byte, like 7d; 1d when not given"),
        .value("max-unfinished", "N", "uploads begun and not finished at any time; 10000 when not given"),
      ].inGroup(.limits)
      + [
        .flag("read-only", "receive nothing"),
        .flag("allow-delete", "let clients delete"),
        .value(
          "allow-origin", "ORIGIN", isRepeatable: true, "web pages that may talk to it: https://host, or *; repeatable"),
        .value(
          "host", "NAME", isRepeatable: true,
          "a name it answers to, as behind a proxy; repeatable; with a token it answers to any"),
      ].inGroup(.access)
      + [
        .value("tls-cert", "FILE", "speak HTTPS with this certificate and those it is signed with, PEM"),
        .value("tls-key", "FILE", "the certificate's key, PEM; nobody else should be able to read it"),
      ].inGroup(.credentials) + MonitoringOptions.declared + ServeBucket.declared
      + [.flag("json", "print an object of JSON a line: the URL, what is sent, each received file")].inGroup(.output),
    examples: [
      .init("serve ~/Pictures/in --share", "from phones nearby: shows a QR code that opens a page which sends"),
      .init("serve --to s3://photos/in/", "into a bucket: nothing of a file is stored on this computer"),
      .init("serve /srv/photos --listen :8080 --token-file token", "for 'fullbore push' and others, on every address"),
    ],
    notes: """
      The URL is the first line printed. Ctrl-C ends it; unfinished uploads go on when it runs again.
      A finished upload appears under its name at once and whole; other bytes are never written over a name unless the
      client asks for it. FOLDER/.fullbore holds what is unfinished, and remembers what was finished, for the time of
      --expire and 50,000 uploads at most; with --max-total, what has expired goes at once when its room is wanted.
      Uploads go only to folders on the file system of FOLDER that the server's user may write; others are refused before
      their bytes come. Start a server of its own for a disk that is mounted below FOLDER.
      A client has 20 s for the head of a request, may be silent for 60 s, and must move 500 bytes a second on the
      average of a minute; a connection that is slower is closed, and what a resumable upload has brought stays.
      GET /healthz says without a token whether files can be received, and /metrics with it what was done, for Prometheus,
      unless FOLDER has files of these names. What --on-upload and --notify have not done is waited for at the end, 10 s at
      most. docs/serving.md says how to run a server: behind a proxy, by systemd, watched, and with programs of your own.
      """)

  let options: ServerOptions
  /// nil: the server is not for browsers of people nearby.
  let share: ShareOptions?
  /// nil: files are stored in a folder.
  let bucket: ServeBucket?
  /// The folder or the place in a bucket, as messages and programs get it.
  private var place: BytePath { bucket?.place ?? options.folder }
  let monitoring: MonitoringOptions
  let listen: ListenAddress
  /// Whether the server uses a certificate of its own.
  let signsItself: Bool
  let style: ServeReport.Style
  let isQuiet: Bool

  init(_ arguments: Arguments) throws(UsageError) {
    bucket = try ServeBucket(arguments)
    guard bucket != nil || arguments.operands.count == 1 else {
      throw UsageError(arguments.operands.isEmpty ? "into which folder?" : "one folder is wanted")
    }
    let wanted = "ADDRESS:PORT, like 127.0.0.1:8080 or [::1]:0"
    let listen =
      try arguments.parsed("listen", wanted: wanted) { ListenAddress($0) }
      ?? ListenAddress(arguments.flag("share") ? "0.0.0.0:8080" : "127.0.0.1:8080")!
    let folder: BytePath
    if let bucket { folder = bucket.folder } else { folder = try Self.folder(arguments.operands[0]) }
    var options = ServerOptions(folder: folder, address: listen.address, port: listen.port)
    let share = try ShareOptions(arguments, &options)
    if share != nil, arguments.value("listen") == nil { options.lastPort = 8099 }
    if let file = arguments.value("token-file") {
      options.token = try ConnectionOptions.token(in: file)
    } else if share != nil {
      options.token = ShareCode.make()
    } else if !listen.isLoopback {
      throw UsageError(
        "--listen \(listen.address):\(listen.port) can be reached from other machines: give --token-file FILE with a secret"
      )
    }
    options.tls = try Self.tls(arguments)
    signsItself = arguments.value("tls") != nil
    options.maxSize = try arguments.parsed("max-size", wanted: "a size above 0, like 8G", Self.limit)
    options.maxTotal = try arguments.parsed("max-total", wanted: "a size above 0, like 100G", Self.limit)
    if let expire = try arguments.parsed("expire", wanted: "a duration of 1s or more, like 7d", Quantity.secondOrMore) {
      options.expire = expire
    }
    if let most = try arguments.count("max-unfinished", 1...Int.max) { options.maxUnfinished = most }
    options.isReadOnly = arguments.flag("read-only")
    options.allowsDelete = arguments.flag("allow-delete")
    options.allowedOrigins = try arguments.all("allow-origin").map { value throws(UsageError) in
      guard let text = String(validating: value.bytes, as: UTF8.self) else {
        throw UsageError("--allow-origin '\(shown(value))': this is not UTF-8")
      }
      // Browsers send origins in this form, and they are compared as strings.
      if text != "*", HTTPURL(text) == nil || text.dropFirst("https://".count).contains(where: { "/?#".contains($0) }) {
        throw UsageError("--allow-origin '\(shown(value))': wanted https://host, https://host:port or *")
      }
      return text
    }
    options.hosts = try arguments.all("host").map { value throws(UsageError) in
      guard let text = String(validating: value.bytes, as: UTF8.self), Self.isHost(text) else {
        throw UsageError("--host '\(shown(value))': wanted a name like photos.example or photos.example:8443")
      }
      return text
    }
    monitoring = try MonitoringOptions(arguments, &options)
    self.options = options
    self.share = share
    self.listen = listen
    isQuiet = arguments.flag("quiet")
    style = arguments.flag("json") ? .json : isQuiet || share == nil ? .silent : .person
  }

  /// Bytes; nil also for 0, which would accept only empty files: `--read-only` exists for that.
  private static func limit(_ text: String) -> Int64? { Quantity.size(text).flatMap { $0 > 0 ? $0 : nil } }

  /// Whether the text is a valid `Host` value: a name or address with an optional port, without other parts of a URL.
  private static func isHost(_ text: String) -> Bool {
    HTTPURL("http://\(text)/") != nil && !text.utf8.contains { $0 <= 32 || "/?#@\\".utf8.contains($0) }
  }

  private static func tls(_ arguments: Arguments) throws(UsageError) -> TLSFiles? {
    if let own = arguments.value("tls") {
      if own != "self" {
        throw UsageError("--tls '\(shown(own))': wanted 'self', or --tls-cert FILE and --tls-key FILE")
      }
      if arguments.value("tls-cert") ?? arguments.value("tls-key") != nil {
        throw UsageError("--tls self and --tls-cert exclude each other")
      }
    }
    switch (arguments.value("tls-cert"), arguments.value("tls-key")) {
    case (let certificate?, let key?): return TLSFiles(certificate: certificate.absolute(), key: key.absolute())
    case (nil, nil): return nil
    default: throw UsageError("--tls-cert and --tls-key: one is of no use without the other")
    }
  }

  /// The fewest bytes of a token that nobody finds by trying.
  private static let shortestToken = 10

  private func warnIfOthersCanRead(_ key: BytePath, _ report: ServeReport) {
    var status = stat()
    guard key.withCString({ stat($0, &status) }) == 0, status.st_mode & 0o077 != 0 else { return }
    report.notice("others can read the key: chmod 600 \(shown(key))")
  }

  var outputIsResult: Bool { false }

  func run() async -> ExitStatus {
    let report = ServeReport(style)
    if let files = options.tls { warnIfOthersCanRead(files.key, report) }
    var options = options
    if let share {
      options.page = ServerOptions.BrowserPage(
        name: place.name.description, runsFor: share.period, endsAfterVisit: share.endsAfterVisit)
    }
    options.thumbnail = { PhotoPreview.jpeg(inStart: $0) }
    do throws(ServerError) {
      let observers = try ServeObservers(monitoring, place, report)
      observers.observe(&options)
      let store = if let bucket { try await bucket.open(options) } else { S3Store?.none }
      let (server, certificate) = try await BlockingPool.shared.run { [options] () throws(ServerError) in
        let certificate = signsItself ? try OwnCertificate.prepare(for: listen) : nil
        var options = options
        if let certificate {
          options.tls = certificate.files
          warnIfOthersCanRead(certificate.files.key, report)
        }
        if let store { return (try Server(options, store), certificate) }
        return (try Server(options), certificate)
      }
      // Before the URL is printed: a program that reads it may send a signal at once.
      let end = ServeEnd(server, share, report)
      announce(server, certificate)
      for notice in server.notices { report.notice(notice) }
      if let token = options.token, token.utf8.count < Self.shortestToken, share != nil || !listen.isLoopback {
        report.notice(
          "the code has \(Quantity.plural(token.utf8.count, "character")), so others can find it by trying: "
            + "take \(Self.shortestToken) or more that nobody can guess")
      }
      let reason = await end.wait()
      let unfinished = await BlockingPool.shared.run {
        server.stop(grace: .seconds(2), listsUnfinished: style != .silent)
      }
      await observers.finish()
      report.end(reason, unfinished, cut: server.cutDownloads, expire: options.expire)
      await BlockingPool.shared.run { report.finish(within: .seconds(2)) }
      return .ok
    } catch {
      await BlockingPool.shared.run { report.finish(within: .seconds(2)) }
      let option = error.isOfMetrics ? "--metrics" : "--listen"
      let advice = error.isPortTaken ? "; \(option) ADDRESS:PORT chooses another one, and port 0 picks a free one" : ""
      Console.error.write("fullbore serve: \(shown(error.message))\(advice)\n")
      return .failed
    }
  }

  private func announce(_ server: Server, _ certificate: SelfSignedCertificate?) {
    let links = ShareLinks(server, listen, token: share.flatMap { _ in options.token }).all
    let url = links.first ?? server.url
    if style == .json {
      var line = JSONLine("listening")
      line.add("url", url)
      if let url = server.metricsURL { line.add("metrics", url) }
      Console.output.write("\(line.text)\n")
    } else {
      Console.output.write("\(url)\n")
    }
    Console.output.flush()
    if isQuiet { return }
    if let url = server.metricsURL { Console.error.write("metrics: \(url)\n") }
    if listen.port != 0, server.port != listen.port {
      Console.error.write("Port \(listen.port) is taken by another program, so this is port \(server.port).\n")
    }
    for link in links.dropFirst() { Console.error.write("or \(link)\n") }
    if share != nil, Console.error.isTerminal, let code = QRCode(url) {
      Console.error.write("\n" + code.lines.map { "  \($0)\n" }.joined() + "\n")
      Console.error.write("Scan it with a phone's camera, or open the link in a browser.\n")
    }
    if let certificate {
      Console.error.write(
        """
        Browsers will warn that nobody vouches for this server. Go on if its certificate has this SHA-256 fingerprint:
        \(certificate.fingerprint)

        """)
    }
    let what = options.isReadOnly ? "Giving the files of" : "Receiving into"
    Console.error.write("\(what) \(shown(place)). \(share?.end ?? "Ctrl-C ends it.")\n")
  }

  static func folder(_ path: BytePath) throws(UsageError) -> BytePath {
    var status = stat()
    if path.withCString({ stat($0, &status) }) != 0 {
      throw UsageError("\(shown(path)): \(String(cString: strerror(errno))); make the folder first")
    }
    if status.st_mode & S_IFMT != S_IFDIR { throw UsageError("\(shown(path)): this is not a folder") }
    // Messages show the real path, because `.` would say little.
    return path.resolved() ?? path.absolute()
  }
}
