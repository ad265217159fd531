import BlobCrypto
import BlobHTTP
import Blobs

/// Identifies where a file arrives, and in which form, besides the file's own URL: the URL that the client posts to,
/// its query, the fields of a form, and the user's account. The journal contains only digests of these, since a query
/// or a field may be secret.
struct Recipient: Sendable {
  /// Digest of everything except the account; nil: the URL of a file is sufficient.
  let digest: String?
  /// Like `digest`, if the endpoint is the file's own URL.
  private let digestAtOwnURL: String?
  /// A digest of the account or of the user's name; empty: neither is known.
  let account: String

  /// Part of the key of a file in the journal, and of a file whose own URL is the endpoint.
  let ofFile, ofFileAtOwnURL: String?

  /// `account`: as `UploadDestination.account`. `seal`: a digest of those for whom files are sealed; nil: they are not.
  init(
    _ endpoint: HTTPURL, _ uploadProtocol: (any UploadProtocol)?, _ headers: HTTPHeaders, _ account: String? = nil,
    _ seal: String? = nil
  ) {
    var words: [String] = []
    if let query = Self.significant(endpoint.query) { words.append("query \(query)") }
    let decides = uploadProtocol?.traits.recipient
    words += decides ?? []
    // The file need not be the one of that name in the folder.
    if decides != nil, words.isEmpty { words = ["form"] }
    if let seal { words.append("sealed \(seal)") }
    let isFolder = endpoint.path.utf8.last == UInt8(ascii: "/")
    let posts = uploadProtocol?.traits.postsToEndpoint == true
    let path = isFolder || !posts ? [] : [Self.word(ofPath: endpoint.normalized.path)]
    let digest = Self.digest(of: (path + words).map(\.utf8))
    // A form contains the file's own name, wherever it is posted to.
    self.init(
      digest, atOwnURL: decides == nil ? Self.digest(of: words.map(\.utf8)) : digest,
      account: account.flatMap { Self.digest(ofAccount: $0) } ?? Self.account(of: headers))
  }

  static func digest(ofAccount account: String) -> String? { digest(of: ["account \(account)".utf8]) }

  fileprivate static func account(of headers: HTTPHeaders) -> String {
    headers.user.flatMap { digest(of: [Array("user ".utf8) + $0]) } ?? ""
  }

  private init(_ digest: String?, atOwnURL: String?, account: String) {
    (self.digest, digestAtOwnURL, self.account) = (digest, atOwnURL, account)
    (ofFile, ofFileAtOwnURL) = (Self.key(digest, account: account), Self.key(atOwnURL, account: account))
  }

  static func key(_ digest: String?, account: String) -> String? {
    account.isEmpty ? digest : "\(digest ?? "")@\(account)"
  }

  func with(account: String) -> Recipient { Recipient(digest, atOwnURL: digestAtOwnURL, account: account) }

  /// The digest of a URL's query for the journal; nil: there is no query, or it only signs the request.
  static func digest(ofQuery query: String?) -> String? { significant(query).flatMap { digest(of: [$0.utf8]) } }

  private static func word(ofPath path: String) -> String { "path \(path)" }

  /// The digest of an endpoint's path, where nothing but that decides.
  static func digest(ofPath path: String) -> String? { digest(of: [word(ofPath: path).utf8]) }

  /// nil: no words. Each word is preceded by its length, so that no two lists make one text.
  private static func digest(of words: [some Collection<UInt8>]) -> String? {
    if words.isEmpty { return nil }
    let text = words.flatMap { Array("\($0.count) ".utf8) + $0 + [UInt8(ascii: "\n")] }
    return String(Digest.hex(of: text, .sha256).prefix(32))
  }

  /// A query without the parameters that sign the request: a signature is renewed, and the URL names the same file.
  private static func significant(_ query: String?) -> String? {
    guard let query else { return nil }
    let pairs = query.split(separator: "&")
    func name(_ pair: Substring) -> String { pair.prefix { $0 != "=" }.lowercased() }
    let names = Set(pairs.map(name))
    // Common parameter names count as a signature only next to a specific one. Azure has its version in `sv`.
    let isSigned = names.contains("signature") || names.isSuperset(of: ["sig", "sv"])
    let kept = pairs.filter { pair in
      let name = name(pair)
      return !name.hasPrefix("x-amz-") && !name.hasPrefix("x-goog-") && !(isSigned && signing.contains(name))
    }
    return kept.isEmpty ? nil : kept.joined(separator: "&")
  }

  /// Parameters of presigned URLs of Amazon S3 (version 2), CloudFront, Google Cloud Storage and of Azure's shared
  /// access signatures.
  private static let signing: Set<String> = [
    "signature", "expires", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy", "sig", "se", "st",
  ]
}

extension HTTPHeaders {
  /// The user that a request names: one server may have a separate tree of files for each user at the same URL. nil:
  /// the request names no user. A bearer token names no user, because it is renewed for the same user; a name without a
  /// password may be such a token. The name is bytes, since a client may choose its encoding. RFC 7617.
  fileprivate var user: [UInt8]? {
    guard let value = self["Authorization"], value.prefix(while: { $0 != " " }).isSameField("Basic"),
      let login = Base64.decode(value.dropFirst(6).trimmed), let colon = login.firstIndex(of: UInt8(ascii: ":")),
      colon > 0, colon < login.count - 1
    else { return nil }
    return Array(login[..<colon])
  }
}

extension UploadDestination {
  /// A digest of what decides where a form posted to `endpoint` arrives; see `JournalDestination.recipient`.
  package static func recipient(of endpoint: HTTPURL, _ form: FormPost) -> String? {
    Recipient(endpoint, form, [:]).digest
  }

  /// `JournalDestination.account` of requests with these fields. `name`: as the property `account`.
  package static func account(of headers: HTTPHeaders, named name: String? = nil) -> String {
    name.flatMap { Recipient.digest(ofAccount: $0) } ?? Recipient.account(of: headers)
  }

  /// Distinguishes this destination from others with the same URL in the journal: `JournalDestination.recipient`.
  public var journaledRecipient: String? { recipient.digest }

  /// `JournalDestination.account`.
  public var journaledAccount: String { recipient.account }

  /// Treats the files of this destination as those of an earlier push recorded in the journal. Throws if that push had
  /// another recipient, for example because the fields of a form are read from a file that has changed.
  package mutating func goOn(with kept: JournalDestination) throws(UploadError) {
    // An earlier version of the journal did not distinguish recipients.
    if kept.recipient == nil, recipient.digest != nil { return recipient = .init() }
    guard kept.recipient == recipient.digest else {
      throw UploadError(
        .giveUp, .journal,
        "\(endpoint): the query of the URL, or the fields of the form, are not those that the push was begun with: run "
          + "the push again, with the ones that are meant now")
    }
    try checkUser(of: kept)
    recipient = recipient.with(account: kept.account ?? "")
  }

  /// Throws if an earlier push in the journal was started for another user. One server may have a separate tree of
  /// files for each user at the same URL, so these credentials would not find its uploads.
  package func checkUser(of kept: JournalDestination) throws(UploadError) {
    let account = kept.account ?? ""
    // Credentials without a user name, then or now, may belong to the same user.
    if account.isEmpty || recipient.account.isEmpty || account == recipient.account { return }
    throw UploadError(
      .giveUp, .journal,
      "\(endpoint): the push was begun for another user: give that user's credentials, or run the push again with those "
        + "that are meant now")
  }
}

extension Recipient {
  /// A recipient that the URL of a file identifies completely.
  init() { self.init(nil, atOwnURL: nil, account: "") }
}
