import BlobHTTP

/// Where a push goes, and with which options. Stored once and shared by its entries. It contains no secrets, only the
/// places where they are found.
public struct JournalDestination: Sendable, Codable, Hashable {
  /// The URL as the user gave it, without its query.
  public var endpoint: String
  /// The URL had a query. The query may contain a signature, so it is not stored and must be given again. nil: there
  /// was none.
  package var hidesQuery: Bool?
  /// A digest of that query without parameters that only sign a request; nil: there was none, or an earlier version has
  /// created this.
  package var queryDigest: String?
  /// A digest of everything that distinguishes this destination from others at the same URL, such as the fields of a
  /// form; nil: there is nothing, or an earlier version has created this. Its files have this digest in
  /// `JournalIntent.recipient`.
  package var recipient: String?
  /// A digest of the name of the user whose files are the target; empty: no user was named; nil: an earlier version has
  /// created this, which did not distinguish users. The files of a user have this digest in `JournalIntent.recipient`
  /// too.
  package var account: String?
  /// `UploadProtocol.name`.
  public var protocolName: String
  /// Paths of files that are read again in each run.
  package var tokenFile: String?
  /// The user's name for the place whose credentials these are, which are looked up there again in each run; nil: they are
  /// given by the paths here, or there are none.
  package var placeName: String?
  /// Paths of files with header fields, which are read again in each run.
  package var headerFiles: [String]
  /// The path of a netrc file with user and password, which is read again in each run; nil: none.
  package var netrcFile: String?
  /// The path of a PEM file of trusted certificates; nil: the system's are trusted.
  package var caFile: String?
  /// A URL without user and password, or `@` and the path of a file with one.
  package var proxy: String?
  /// Any certificate is accepted.
  package var insecure: Bool
  /// Files with other bytes at the destination are replaced.
  public var overwrite: Bool
  /// The name of the digest in each request; nil: none.
  package var checksum: String?
  /// How forms are posted; nil for other protocols.
  package var form: JournalForm?
  /// The place in S3; nil for other protocols.
  package var s3: S3Location?
  /// true: the server is not told when files were last modified; nil, also in journals of earlier versions: it is told.
  package var omitsTimes: Bool?
  /// true: every upload is read back and compared; nil, also in journals of earlier versions: it is not.
  package var verifies: Bool?
  /// true: a file whose name has other bytes gets a name with a number; nil, also in journals of earlier versions: it fails.
  package var renames: Bool?
  /// For whom files are sealed; nil, also in journals of earlier versions: they are sent as they are.
  package var seal: JournalSeal?

  /// Creates a destination of no named user. The query of `endpoint` is removed, because it may contain secrets.
  /// `protocolName`: that of the protocol of the uploads.
  public init(endpoint: String, protocolName: String, overwrite: Bool = false) {
    self.init(endpoint: endpoint, protocolName: protocolName, tokenFile: nil, overwrite: overwrite, account: "")
  }

  /// Creates the destination of a command.
  package init(
    endpoint: String, protocolName: String, tokenFile: String? = nil, headerFiles: [String] = [],
    netrcFile: String? = nil, caFile: String? = nil, proxy: String? = nil, insecure: Bool = false,
    overwrite: Bool = false, checksum: String? = nil, form: JournalForm? = nil, s3: S3Location? = nil,
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

extension JournalDestination {
  /// The endpoint, normalized: the same for one place, however its URL was written.
  package var place: String { HTTPURL(endpoint)?.normalized.text ?? endpoint }
}

/// For whom a push seals its files.
package struct JournalSeal: Sendable, Codable, Hashable {
  /// Public keys, as `SealRecipient.description` shows them.
  package var recipients: [String]
  /// The path of the file with the passphrase, which is read again in each run; nil: there is none.
  package var passphraseFile: String?
  /// true: names are sealed too; nil, also in journals of earlier versions: they are not.
  package var names: Bool?

  package init(recipients: [String], passphraseFile: String? = nil, names: Bool = false) {
    (self.recipients, self.passphraseFile) = (recipients, passphraseFile)
    self.names = names ? true : nil
  }
}

/// How a push posts its forms.
package struct JournalForm: Sendable, Codable, Hashable {
  /// nil: the default name.
  package var field: String?
  /// Paths of files that are read again in each run.
  package var fieldFiles: [String]
  /// There were fields that are not stored.
  package var hadTypedFields: Bool
  /// The status that means success; nil: any from 200 to 299.
  package var expectedStatus: Int?
  /// A `JSONPath` into the server's response.
  package var reply: String?

  /// Creates a description of how forms are posted. `field` nil: the usual name of the file's field.
  package init(
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

/// A place in S3, and how objects are created there. Each run looks up the access keys again, in the environment and
/// Amazon's configuration files.
package struct S3Location: Sendable, Codable, Hashable {
  /// The bucket, its region and its server.
  package var address: S3Address
  /// The profile with the access keys; nil: the environment, or the default profile.
  package var profile: String?
  /// The storage class of new objects; nil: the bucket's default.
  package var storageClass: String?
  /// Metadata of new objects, by name without the prefix `x-amz-meta-`.
  package var metadata: [String: String]
  /// nil: the bucket's default.
  package var encryption: S3Encryption?

  /// Creates a place in S3. `profile` nil: the environment, or the default profile.
  package init(
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
