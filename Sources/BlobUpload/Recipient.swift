import BlobCrypto
import BlobHTTP

/// What decides where a file arrives, and as what, besides the file's own URL: the URL that it is posted to, that URL's query
/// and the fields of a form. The journal keeps digests of these, since a query and a field may be secret.
struct Recipient: Sendable {
  /// nil: the URL of a file says it all.
  let digest: String?
  /// As `digest`, where the endpoint is the file's own URL.
  let digestAtOwnURL: String?

  init(_ endpoint: HTTPURL, _ dialect: (any UploadProtocol)?) {
    var words: [String] = []
    if let query = Self.significant(endpoint.query) { words.append("query \(query)") }
    let form = dialect as? FormPost
    if let form, form.field != FormPost().field { words.append("file \(form.field)") }
    for field in form?.fields ?? [] { words += ["field \(field.name)", field.value] }
    let isFolder = endpoint.path.utf8.last == UInt8(ascii: "/")
    let posts = form != nil || dialect is Tus || dialect is IETFResumable
    digest = Self.digest(of: isFolder || !posts ? words : ["path \(endpoint.path)"] + words)
    // A form says the file's own name, wherever it is posted to.
    digestAtOwnURL = form == nil ? Self.digest(of: words) : digest
  }

  /// What the journal keeps of a URL's query; nil: there is none, or it only signs the request.
  static func digest(ofQuery query: String?) -> String? { significant(query).flatMap { digest(of: [$0]) } }

  /// nil: no words. Each word is preceded by its length, so that no two lists make one text.
  private static func digest(of words: [String]) -> String? {
    if words.isEmpty { return nil }
    let text = words.map { "\($0.utf8.count) \($0)\n" }.joined()
    return String(Digest.hex(of: Array(text.utf8), .sha256).prefix(32))
  }

  /// A query without what signs the request: a signature is renewed, and leads to the same place.
  private static func significant(_ query: String?) -> String? {
    guard let query else { return nil }
    let pairs = query.split(separator: "&")
    func name(_ pair: Substring) -> String { pair.prefix { $0 != "=" }.lowercased() }
    let names = Set(pairs.map(name))
    // Words that anyone may use mean a signature only beside one. Azure's has its version in `sv`.
    let isSigned = names.contains("signature") || names.isSuperset(of: ["sig", "sv"])
    let kept = pairs.filter { pair in
      let name = name(pair)
      return !name.hasPrefix("x-amz-") && !name.hasPrefix("x-goog-") && !(isSigned && signing.contains(name))
    }
    return kept.isEmpty ? nil : kept.joined(separator: "&")
  }

  /// Of presigned URLs of Amazon S3 (version 2), CloudFront, Google Cloud Storage and Azure's shared access signatures.
  private static let signing: Set<String> = [
    "signature", "expires", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy", "sig", "se", "st",
  ]
}

extension UploadDestination {
  /// A digest of what decides where a form posted to `endpoint` arrives; see `JournalDestination.recipient`.
  package static func recipient(of endpoint: HTTPURL, _ form: FormPost) -> String? { Recipient(endpoint, form).digest }

  /// What the journal keeps of this destination, besides its URL, to tell it from others.
  public var journaledRecipient: String? { recipient.digest }

  /// Makes the files of this destination those of an earlier push, as the journal knows them. Throws where that one
  /// went elsewhere: the fields of a form, say, are read from a file that has changed.
  package mutating func goOn(with kept: JournalDestination) throws(UploadError) {
    if kept.recipient == recipient.digest { return }
    // An earlier version of the journal did not tell recipients apart.
    if kept.recipient == nil { return recipient = .init() }
    throw UploadError(
      .giveUp, .journal,
      "\(endpoint): the query of the URL, or the fields of the form, are not those that the push was begun with: run the "
        + "push again, with the ones that are meant now")
  }
}

extension Recipient {
  /// The URL of a file says it all.
  init() { (digest, digestAtOwnURL) = (nil, nil) }
}
