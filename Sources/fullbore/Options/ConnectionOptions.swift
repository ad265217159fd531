import BlobHTTP
import Blobs
import Glibc

/// How the server is spoken to; `push`, `resume` and `abort` take the same.
///
/// Secrets stay in the files they are in: what is kept is where, and they are read by `headers(for:)`.
struct ConnectionOptions: Sendable, Hashable {
  enum Header: Sendable, Hashable {
    case field(name: String, value: String)
    case file(BytePath)
  }

  var headers: [Header] = []
  var tokenFile: BytePath?
  var certificates: BytePath?
  var isInsecure = false
  var proxy: String?
  /// nil: the policy's own number.
  var retries: Int?
  /// Without progress; nil: the transport's own limit.
  var timeout: Duration?

  init() {}

  init(_ arguments: Arguments) throws(UsageError) {
    for value in arguments.all("header") { headers.append(try Self.header(value)) }
    tokenFile = arguments.value("token-file")?.absolute()
    certificates = arguments.value("cacert")?.absolute()
    isInsecure = arguments.flag("insecure")
    proxy = try arguments.text("proxy")
    retries = try arguments.count("retries", 0...1_000_000)
    timeout = try arguments.parsed("timeout", wanted: "a duration, like 30s or 5m") { text in
      Quantity.duration(text).flatMap { $0 > .zero ? $0 : nil }
    }
    if let certificates, certificates.withCString({ access($0, R_OK) }) != 0 {
      throw UsageError("--cacert \(shown(certificates)): \(String(cString: strerror(errno)))")
    }
    _ = try requestHeaders()
  }

  /// The user's own fields and the credential, read from where they are now.
  func requestHeaders() throws(UsageError) -> HTTPHeaders {
    var result = HTTPHeaders()
    for header in headers {
      switch header {
      case .field(let name, let value): result.add(name, value)
      case .file(let path):
        for line in try Self.lines(of: path, for: "--header") {
          let (name, value) = try Self.field(line, in: "--header @\(shown(path))")
          result.add(name, value)
        }
      }
    }
    if let tokenFile { result["Authorization"] = "Bearer \(try Self.token(in: tokenFile))" }
    return result
  }

  /// The one line in `file`. Its content never shows in a message.
  static func token(in file: BytePath) throws(UsageError) -> String {
    let lines = try lines(of: file, for: "--token-file")
    guard lines.count == 1, lines[0].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw UsageError("--token-file \(shown(file)): wanted one line with the token, without spaces")
    }
    return lines[0]
  }

  private static func header(_ value: BytePath) throws(UsageError) -> Header {
    if value.bytes.first == UInt8(ascii: "@") { return .file(BytePath(value.bytes.dropFirst()).absolute()) }
    guard let text = String(validating: value.bytes, as: UTF8.self) else {
      throw UsageError("--header: this is not UTF-8")
    }
    let (name, content) = try field(text, in: "--header")
    return .field(name: name, value: content)
  }

  /// `Name: value`. The value may be a secret, so a refusal does not repeat the line.
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

  // RFC 9110 §5.6.2: what a token must not contain.
  private static let separators = Set("()<>@,;:\\\"/[]?={}".utf8)

  private static func lines(of file: BytePath, for option: String) throws(UsageError) -> [String] {
    do throws(BlobError) {
      let bytes = try smallFile(file)
      let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
      return lines.map { $0.trimmed }.filter { !$0.isEmpty }
    } catch {
      throw UsageError("\(option): \(shown(error.message))")
    }
  }

  static let declared: [OptionDeclaration] = [
    .value("header", "'K: V'", isRepeatable: true, "one more request field, or @FILE with a field a line; repeatable"),
    .value("token-file", "FILE", "the bearer token, in a file: 'Authorization: Bearer …'"),
    .value("cacert", "FILE", "certificates to trust, PEM"),
    .flag("insecure", "trust any certificate: whoever answers can read and change everything"),
    .value("proxy", "URL", "never used for this machine"),
    .value("retries", "N", "attempts without progress before a file is given up"),
    .value("timeout", "DURATION", "without progress before a connection is given up, like 30s"),
  ]
}

/// A file of at most 64 KiB: a token, a few header fields.
private func smallFile(_ path: BytePath) throws(BlobError) -> [UInt8] {
  let reader = try FileSource(path).open(at: 0, Cancellation())
  if let length = reader.info.length, length > 64 << 10 {
    throw BlobError(.unsupported, "\(path): \(length) bytes are too many for a file with a secret in it")
  }
  var bytes = [UInt8](repeating: 0, count: (64 << 10) + 1)
  var count = 0
  while count < bytes.count {
    let room = count
    let got = try readSome(reader, &bytes, from: room)
    if got == 0 { break }
    count += got
  }
  return Array(bytes.prefix(count))
}

private func readSome(_ reader: any BlobReader, _ bytes: inout [UInt8], from start: Int) throws(BlobError) -> Int {
  do {
    return try bytes.withUnsafeMutableBytes { raw in
      try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: raw[start...]))
    }
  } catch {
    throw error as! BlobError  // withUnsafeMutableBytes rethrows only what `read` threw
  }
}

let journalOption = OptionDeclaration.value(
  "journal", "FILE", "where what was done is remembered; $FULLBORE_JOURNAL, else under $XDG_STATE_HOME/fullbore")

/// Flag before environment before default.
func journalPath(_ arguments: Arguments) throws(UsageError) -> BytePath {
  if let given = arguments.value("journal") { return given.absolute() }
  if let given = environment("FULLBORE_JOURNAL") { return given.absolute() }
  // A relative XDG path is to be ignored. XDG Base Directory Specification 0.8.
  if let state = environment("XDG_STATE_HOME"), state.isAbsolute {
    return state.appending("fullbore/journal.sqlite")
  }
  guard let home = environment("HOME"), home.isAbsolute else {
    throw UsageError("there is no home folder for the journal: give --journal FILE, or set HOME")
  }
  return home.appending(".local/state/fullbore/journal.sqlite")
}

/// nil also where the variable is empty.
func environment(_ name: String) -> BytePath? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return BytePath(cString: value)
}
