/// Where a push goes and how to speak to it: kept once, shared by its entries. No secret is in it, only where
/// secrets are found.
public struct JournalDestination: Sendable, Codable, Hashable {
  /// The URL as it was given.
  public var endpoint: String
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

  public init(
    endpoint: String, protocolName: String, tokenFile: String? = nil, headerFiles: [String] = [],
    netrcFile: String? = nil, caFile: String? = nil, proxy: String? = nil, insecure: Bool = false,
    overwrite: Bool = false, checksum: String? = nil, form: JournalForm? = nil
  ) {
    self.endpoint = endpoint
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
