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

  public init(
    endpoint: String, protocolName: String, tokenFile: String? = nil, headerFiles: [String] = [],
    netrcFile: String? = nil, caFile: String? = nil, proxy: String? = nil, insecure: Bool = false,
    overwrite: Bool = false, checksum: String? = nil
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
  }
}
