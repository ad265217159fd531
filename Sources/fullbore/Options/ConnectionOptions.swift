import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// Options for connections to the server; `push`, `resume` and `abort` have the same.
///
/// Secrets stay in their files: only the paths are stored, and the files are read when needed.
struct ConnectionOptions: Sendable, Hashable {
  enum Header: Sendable, Hashable {
    case field(name: String, value: String)
    case file(BytePath)
  }

  enum ProxyPlace: Sendable, Hashable {
    /// A proxy without user and password.
    case url(Proxy)
    case file(BytePath)
  }

  var headers: [Header] = []
  var tokenFile: BytePath?
  var netrcFile: BytePath?
  /// Only places have these; with a password command there is a user.
  var tokenCommand: SecretCommand?
  var user: String?
  var passwordCommand: SecretCommand?
  /// Whose files are at the place, if it says so.
  var account: String?
  /// The place whose credentials these are; nil: they were given, or there are none.
  var placeName: String?
  var certificates: BytePath?
  var isInsecure = false
  var proxy: ProxyPlace?
  /// nil: the default of the retry policy.
  var retries: Int?
  /// For the first request, which otherwise fails soon: the destination most likely has a wrong URL.
  var retryFirst: RetryPolicy? { retries.map { RetryPolicy(retries: $0) } }
  /// Maximum time without progress; nil: the transport's default.
  var timeout: Duration?
  /// Maximum time for the response once the server has the whole request; nil: the transport's default.
  var finishTimeout: Duration?
  var s3 = S3Options()

  init() {}

  /// - `namesBuckets`: the command also has the options of `s3://`.
  init(_ arguments: Arguments, namesBuckets: Bool = true) throws(UsageError) {
    for value in arguments.all("header") { headers.append(try Self.header(value)) }
    tokenFile = arguments.value("token-file")?.absolute()
    tokenCommand = Self.command("token-command", arguments)
    user = try arguments.text("user")
    passwordCommand = Self.command("password-command", arguments)
    account = try arguments.text("account")
    placeName = arguments.placeOfCredentials
    certificates = arguments.value("cacert")?.absolute()
    isInsecure = arguments.flag("insecure")
    proxy = try arguments.value("proxy").map(Self.proxy)
    retries = try arguments.count("retries", 0...1_000_000)
    timeout = try Self.limit("timeout", arguments)
    finishTimeout = try Self.limit("finish-timeout", arguments)
    if namesBuckets { s3 = try S3Options(arguments) }
    if let given = arguments.value("netrc-file") {
      netrcFile = given.absolute()
    } else if arguments.flag("netrc") {
      netrcFile = try Self.ownNetrc()
    }
    if let certificates { try Self.check(certificates) }
    _ = try requestHeaders(for: nil)
    _ = try readProxy()
  }

  /// A pipe would keep the first request waiting for whoever writes into it.
  private static func check(_ certificates: BytePath) throws(UsageError) {
    var status = stat()
    guard certificates.withCString({ access($0, R_OK) == 0 && stat($0, &status) == 0 }) else {
      throw UsageError("--cacert \(shown(certificates)): \(String(cString: strerror(errno)))")
    }
    if status.st_mode & S_IFMT != S_IFREG {
      throw UsageError("--cacert \(shown(certificates)): this is no regular file")
    }
  }

  /// The user's own fields and the credentials, read from their files now. Without an endpoint the netrc file is only
  /// parsed, and no command runs. `again`: commands run even if their output is known.
  func requestHeaders(for endpoint: HTTPURL?, again: Bool = false) throws(UsageError) -> HTTPHeaders {
    var result = HTTPHeaders()
    for header in headers {
      switch header {
      case .field(let name, let value): result.add(name, value)
      case .file(let path):
        for line in try SecretFile.lines(of: path, for: "--header") {
          let (name, value) = try Self.field(line, in: "--header @\(shown(path))")
          result.add(name, value)
        }
      }
    }
    if let tokenFile { result["Authorization"] = "Bearer \(try Self.token(in: tokenFile))" }
    if endpoint != nil, let tokenCommand {
      let token = try tokenCommand.output(again: again)
      if !Self.isToken(token) {
        throw UsageError("token-command: what the command prints has a space in it, and is no token")
      }
      result["Authorization"] = "Bearer \(token)"
    }
    if endpoint != nil, let user, let passwordCommand {
      result["Authorization"] = Netrc.Login(user: user, password: try passwordCommand.output(again: again)).basic
    }
    if let netrcFile {
      let netrc = Netrc(try SecretFile.text(of: netrcFile, for: "--netrc"))
      if let endpoint, result["Authorization"] == nil {
        guard let login = netrc.login(for: endpoint.host) else {
          throw UsageError("--netrc: \(shown(netrcFile)) has no entry for the machine \(endpoint.host)")
        }
        result["Authorization"] = login.basic
      }
    }
    return result
  }

  /// Uses the netrc file only if it names the destination's host: its default is for the host that it was given for.
  mutating func keepNetrc(ifNaming host: String) throws(UsageError) {
    guard let netrcFile else { return }
    if !Netrc(try SecretFile.text(of: netrcFile, for: "--netrc")).names(host) { self.netrcFile = nil }
  }

  /// The proxy with its credentials, read from its file now.
  func readProxy() throws(UsageError) -> Proxy? {
    switch proxy {
    case nil: return nil
    case .url(let proxy): return proxy
    case .file(let path):
      let lines = try SecretFile.lines(of: path, for: "--proxy")
      guard lines.count == 1, let proxy = Proxy(lines[0]) else {
        throw UsageError("--proxy @\(shown(path)): wanted one line: \(Self.proxyForm)")
      }
      return proxy
    }
  }

  private static let proxyForm = "http://host:port, socks5://host:port or socks5h://host:port"

  /// Error messages do not repeat the URL, because it may contain a password.
  private static func proxy(_ value: BytePath) throws(UsageError) -> ProxyPlace {
    if value.bytes.first == UInt8(ascii: "@") { return .file(BytePath(value.bytes.dropFirst()).absolute()) }
    guard let text = String(validating: value.bytes, as: UTF8.self), let proxy = Proxy(text) else {
      throw UsageError("--proxy: wanted \(proxyForm), or @FILE with such a URL in it")
    }
    if proxy.hasCredentials {
      throw UsageError(
        "--proxy \(proxy): everyone on this machine can see a password on the command line: "
          + "put the URL into a file and give --proxy @FILE, or into $https_proxy or $http_proxy")
    }
    return .url(proxy)
  }

  private static func ownNetrc() throws(UsageError) -> BytePath {
    if let given = environment("NETRC") { return given.absolute() }
    guard let home = environment("HOME"), home.isAbsolute else {
      throw UsageError("--netrc: there is no home folder: give --netrc-file FILE, or set HOME")
    }
    return home.appending(".netrc")
  }

  private static func limit(_ name: String, _ arguments: Arguments) throws(UsageError) -> Duration? {
    try arguments.parsed(name, wanted: "a duration, like 30s or 5m") { text in
      Quantity.duration(text).flatMap { $0 > .zero ? $0 : nil }
    }
  }

  /// The single line of `file`. Messages never contain it.
  static func token(in file: BytePath) throws(UsageError) -> String {
    let lines = try SecretFile.lines(of: file, for: "--token-file")
    guard lines.count == 1, isToken(lines[0]) else {
      throw UsageError("--token-file \(shown(file)): wanted one line with the token, without spaces")
    }
    return lines[0]
  }

  private static func isToken(_ text: String) -> Bool { text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }

  private static func command(_ setting: String, _ arguments: Arguments) -> SecretCommand? {
    arguments.value(setting).map { SecretCommand(text: $0, setting: setting) }
  }

  private static func header(_ value: BytePath) throws(UsageError) -> Header {
    if value.bytes.first == UInt8(ascii: "@") { return .file(BytePath(value.bytes.dropFirst()).absolute()) }
    guard let text = String(validating: value.bytes, as: UTF8.self) else {
      throw UsageError("--header: this is not UTF-8")
    }
    let (name, content) = try field(text, in: "--header")
    return .field(name: name, value: content)
  }

  /// Parses `Name: value`. The value may be secret, so an error message does not repeat the line.
  private static func field(_ line: String, in place: String) throws(UsageError) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: ":") else { throw UsageError("\(place): wanted 'Name: value'") }
    let name = line[..<colon]
    let value = line[line.index(after: colon)...].trimmed
    let isName = !name.isEmpty && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && !separators.contains($0) }
    if !isName { throw UsageError("\(place): wanted 'Name: value'") }
    if value.utf8.contains(where: { $0 < 0x20 && $0 != 9 || $0 == 0x7F }) {
      throw UsageError("\(place): the value of \(name) has a control character in it")
    }
    return (String(name), value)
  }

  // RFC 9110 §5.6.2: characters that a token must not contain.
  private static let separators = Set("()<>@,;:\\\"/[]?={}".utf8)

  static let declared = declaredForServers + S3Options.declared

  /// The options for every kind of server.
  static let declaredForServers: [OptionDeclaration] =
    [
      .value("token-file", "FILE", "the bearer token, in a file: 'Authorization: Bearer …'; read again after a 401")
    ]
    + [
      .value(
        "header", "'K: V'", isRepeatable: true, "one more request field, or @FILE with a field a line; repeatable"),
      .flag("netrc", "user and password for the destination's host from $NETRC or ~/.netrc"),
      .value("netrc-file", "FILE", "the same, from another file"),
      .value("cacert", "FILE", "certificates to trust, PEM"),
      .flag("insecure", "trust any certificate: whoever answers can read and change everything"),
    ].inGroup(.credentials)
    + [
      .value("proxy", "URL", "http:// or socks5h://host:port, or @FILE with it; never used for this machine"),
      .value(
        "retries", "N",
        "tries after a failed one, in a row; else 2 before any answer, then 8, and 10m away"),
      .value("timeout", "DURATION", "without progress before a connection is given up, like 30s; 1m when not given"),
      .value(
        "finish-timeout", "DURATION",
        "for the answer once all is sent, 12 times that while it is at work; else 5m"
      ),
    ].inGroup(.network)
}
