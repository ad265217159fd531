/// Where a push goes and how to speak to it: kept once, shared by its entries. No secret is in it, only where
/// secrets are found.
public struct JournalDestination: Sendable, Codable, Hashable {
  /// The URL as it was given, without its query.
  public var endpoint: String
  /// The URL had a query. It may be a signature, so it is not kept, and has to be given again. nil: there was none.
  public var hidesQuery: Bool?
  /// A digest of that query, without what only signs a request; nil: there was none, or an earlier version made this.
  public var queryDigest: String?
  /// A digest of all that tells this destination from others at the same URL, as the fields of a form do; nil: nothing
  /// does, or an earlier version made this. Its files have it in `JournalIntent.recipient`.
  public var recipient: String?
  /// A digest of the name of the user, whose tree of files is meant; empty: none was named. nil: an earlier version made this,
  /// which did not tell users apart. The files of a user have it in `JournalIntent.recipient` too.
  public var account: String?
  /// `UploadProtocol.name`.
  public var protocolName: String
  /// Paths of files that are read again at each run.
  public var tokenFile: String?
  public var headerFiles: [String]
  public var netrcFile: String?
  public var caFile: String?
  /// A URL without user and password, or `@` and the path of a file with one.
  public var proxy: String?
  public var insecure: Bool
  public var overwrite: Bool
  /// Name of the digest that each request carries; nil: none does.
  public var checksum: String?
  /// How forms are posted; nil where none are.
  public var form: JournalForm?
  /// Of S3; nil for all else.
  public var s3: S3Place?
  /// The server is not told when files were last written; nil, also in journals of earlier versions: it is.
  public var omitsTimes: Bool?
  /// Every upload is read back and compared; nil, also in journals of earlier versions: it is not.
  public var verifies: Bool?

  public init(
    endpoint: String, protocolName: String, tokenFile: String? = nil, headerFiles: [String] = [],
    netrcFile: String? = nil, caFile: String? = nil, proxy: String? = nil, insecure: Bool = false,
    overwrite: Bool = false, checksum: String? = nil, form: JournalForm? = nil, s3: S3Place? = nil,
    omitsTimes: Bool? = nil, verifies: Bool? = nil, recipient: String? = nil, account: String? = nil
  ) {
    self.endpoint = String(endpoint.prefix { $0 != "?" })
    let query = endpoint.firstIndex(of: "?").map { String(endpoint[endpoint.index(after: $0)...]) }
    hidesQuery = query == nil ? nil : true
    queryDigest = Recipient.digest(ofQuery: query)
    self.recipient = recipient
    self.account = account
    self.protocolName = protocolName
    self.tokenFile = tokenFile
    self.headerFiles = headerFiles
    self.netrcFile = netrcFile
    self.caFile = caFile
    self.proxy = proxy
    self.insecure = insecure
    self.overwrite = overwrite
    self.checksum = checksum
    self.form = form
    self.s3 = s3
    self.omitsTimes = omitsTimes
    self.verifies = verifies
  }
}

/// How a push posted its forms.
public struct JournalForm: Sendable, Codable, Hashable {
  /// nil: as it is unless told.
  public var field: String?
  /// Paths of files that are read again at each run.
  public var fieldFiles: [String]
  /// There were fields which are not kept.
  public var hadTypedFields: Bool
  public var expectedStatus: Int?
  /// A `JSONPath`.
  public var reply: String?

  public init(
    field: String? = nil, fieldFiles: [String] = [], hadTypedFields: Bool = false, expectedStatus: Int? = nil,
    reply: String? = nil
  ) {
    self.field = field
    self.fieldFiles = fieldFiles
    self.hadTypedFields = hadTypedFields
    self.expectedStatus = expectedStatus
    self.reply = reply
  }
}

/// A place in S3, and how objects are made there. Keys are found anew in each run, where the environment and Amazon's
/// files have them.
public struct S3Place: Sendable, Codable, Hashable {
  public var address: S3Address
  /// Where keys are looked for; nil: in the environment, or the default profile.
  public var profile: String?
  public var storageClass: String?
  public var metadata: [String: String]
  /// nil: as the bucket has it.
  public var encryption: S3Encryption?

  public init(
    _ address: S3Address, profile: String? = nil, storageClass: String? = nil, metadata: [String: String] = [:],
    encryption: S3Encryption? = nil
  ) {
    self.address = address
    self.profile = profile
    self.storageClass = storageClass
    self.metadata = metadata
    self.encryption = encryption
  }
}
