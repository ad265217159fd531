import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// The S3 options of the command line. All other settings are read from the places that Amazon's own tools use.
struct S3Options: Sendable, Hashable {
  var endpoint: String?
  var region: String?
  var profile: String?
  /// The bucket's name is part of the host's name; nil: the default of the endpoint.
  var isVirtual: Bool?
  var storageClass: String?
  var metadata: [String: String] = [:]
  var encryption: S3Encryption?
  /// The place that is the destination; nil: the destination is a URL, or is not in S3.
  var place: PlaceInS3?

  /// What decides about the endpoint of a place that has none of its own.
  struct PlaceInS3: Sendable, Hashable {
    var name: String
    /// The place names the profile whose keys are used.
    var namesProfile: Bool
  }

  init() {}

  /// Whether any of the options is given, or set by a place.
  var areGiven: Bool {
    var options = self
    options.place = nil
    return options != S3Options()
  }

  init(_ arguments: Arguments) throws(UsageError) {
    endpoint = try arguments.parsed("endpoint", wanted: "a URL, like http://127.0.0.1:9000") { text in
      HTTPURL(text)?.withASCIIHost.flatMap { url in
        url.query != nil ? nil : url.host == HTTPURL(text)?.host ? text : url.text
      }
    }
    region = try arguments.parsed("region", wanted: "a region's name, like eu-west-1") {
      S3Address.isRegion($0) ? $0 : nil
    }
    profile = try arguments.text("profile")
    place = arguments.placeInS3
    isVirtual = try arguments.parsed("addressing", wanted: "path or virtual") {
      $0 == "virtual" ? true : $0 == "path" ? false : nil
    }
  }

  /// Reads the options for new objects, which only `push` has.
  mutating func takeObjectOptions(_ arguments: Arguments) throws(UsageError) {
    storageClass = try arguments.parsed("storage-class", wanted: "a class, like STANDARD_IA") { text in
      text.utf8.allSatisfy { 0x21...0x7E ~= $0 } && !text.isEmpty ? text : nil
    }
    encryption = try Self.encryption(arguments)
    for value in arguments.all("metadata") {
      guard let text = String(validating: value.bytes, as: UTF8.self), let equals = text.firstIndex(of: "=") else {
        throw UsageError("--metadata '\(shown(value))': wanted K=V")
      }
      let (name, content) = (text[..<equals].lowercased(), text[text.index(after: equals)...].trimmed)
      let isName = !name.isEmpty && name.utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == 0x2D || $0 == 0x5F }
      guard isName, content.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
        throw UsageError("--metadata '\(shown(value))': wanted K=V, of letters, digits, - and _, and of plain ASCII")
      }
      if metadata.updateValue(content, forKey: name) != nil {
        throw UsageError("--metadata '\(shown(value))': \(name) is given twice: which of the two?")
      }
    }
  }

  private static func encryption(_ arguments: Arguments) throws(UsageError) -> S3Encryption? {
    let algorithm = try arguments.parsed("sse", wanted: S3Encryption.algorithms.joined(separator: " or ")) {
      S3Encryption.algorithms.contains($0) ? $0 : nil
    }
    let key = try arguments.parsed("sse-kms-key", wanted: "the ID or ARN of a key") { text in
      !text.isEmpty && text.utf8.allSatisfy { 0x21...0x7E ~= $0 } ? text : nil
    }
    if key != nil, algorithm != "aws:kms" { throw UsageError("--sse-kms-key is for --sse aws:kms") }
    return algorithm.map { S3Encryption(algorithm: $0, keyID: key) }
  }

  static let declared: [OptionDeclaration] = [
    .value("endpoint", "URL", "a server that is not Amazon's; $AWS_ENDPOINT_URL"),
    .value("region", "NAME", "where the bucket is; found out for Amazon's; $AWS_REGION"),
    .value("profile", "NAME", "whose keys, in ~/.aws/credentials or ~/.aws/config; $AWS_PROFILE"),
    .value("addressing", "path|virtual", "the bucket in the URL's path, or in the host's name"),
  ].inGroup(.s3)

  static let objectDeclared: [OptionDeclaration] = [
    .value("storage-class", "NAME", "of what is made there, like STANDARD_IA"),
    .value("sse", "AES256|aws:kms", "encrypted there; else as the bucket has it"),
    .value("sse-kms-key", "ID", "with this key of --sse aws:kms"),
    .value("metadata", "K=V", isRepeatable: true, "kept with every object; repeatable"),
  ].inGroup(.s3)
}

extension UInt8 {
  fileprivate var isASCIILetterOrDigit: Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= self || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self
      || UInt8(ascii: "0")...UInt8(ascii: "9") ~= self
  }
}

/// A bucket, and the credentials for it.
struct S3Access: Sendable {
  var address: S3Address
  let signer: S3Signer
  private let profile: String?

  init(bucket: String, _ options: S3Options) throws(UsageError) {
    let settings = try Self.settings(options.profile)
    let endpoint = if let given = options.endpoint { given } else { try Self.endpoint(settings, options.place) }
    address = S3Address(
      bucket: bucket, endpoint: endpoint,
      region: options.region ?? settings.region ?? "us-east-1", isVirtual: options.isVirtual ?? settings.isVirtual)
    profile = options.profile
    signer = Self.signer(settings, address.region, profile)
  }

  /// The bucket of an earlier push, with the current credentials.
  init(_ place: S3Location, _ options: S3Options) throws(UsageError) {
    address = place.address
    profile = options.profile ?? place.profile
    if let endpoint = options.endpoint { address.endpoint = endpoint }
    if let region = options.region { address.region = region }
    signer = Self.signer(try Self.settings(profile), address.region, profile)
  }

  /// The bucket's address and options for the journal, called once the bucket was found.
  func place(_ options: S3Options) -> S3Location {
    var address = address
    address.region = signer.region
    return S3Location(
      address, profile: profile, storageClass: options.storageClass, metadata: options.metadata,
      encryption: options.encryption)
  }

  private static func signer(_ settings: S3Settings, _ region: String, _ profile: String?) -> S3Signer {
    // If the settings cannot be read again, the old credentials stay.
    S3Signer(settings.credentials, region: region, renewal: { try? Self.settings(profile).credentials })
  }

  /// The endpoint where none is given. A place without one is at Amazon's, or where the profile is that it names: what
  /// another program was told must lead neither its files nor its secrets elsewhere.
  private static func endpoint(_ settings: S3Settings, _ place: S3Options.PlaceInS3?) throws(UsageError) -> String? {
    guard let place else { return settings.endpoint }
    if place.namesProfile, let own = settings.profileEndpoint { return own }
    guard let found = settings.endpoint else { return nil }
    let (origin, remedy) =
      settings.endpointVariable.map { ("$\($0)", "unset \($0)") }
      ?? ("the profile, which the place does not name,", "name it there: profile = \"NAME\"")
    let text = PlaceText.quoted(shown(BytePath(found).withoutSecrets))
    throw UsageError(
      "the place '\(place.name)' has no endpoint, so it is at Amazon's, and \(origin) says \(text): write endpoint = \(text) "
        + "into [places.\(place.name)] if the place is there, else \(remedy)")
  }

  /// For a new place that is given no endpoint: the one at which it would be found now, unless the profile has it that the
  /// place names. nil: Amazon's, or it is not known without keys.
  static func endpoint(forNewPlaceWith profile: String?) -> String? {
    guard let settings = try? settings(profile) else { return nil }
    return profile != nil && settings.profileEndpoint != nil ? nil : settings.endpoint
  }

  /// The endpoint of the profile that a place names; nil: none. Throws if there are no keys.
  static func endpoint(of profile: String) throws(UsageError) -> String? { try settings(profile).profileEndpoint }

  private static func settings(_ profile: String?) throws(UsageError) -> S3Settings {
    do {
      return try S3Settings.load(
        profile: profile, environment: { environment($0)?.description },
        read: { path in
          let path = BytePath(path)
          // Users give /dev/null to say "none".
          var status = stat()
          if path.status(&status) != 0 || status.st_mode & S_IFMT == S_IFCHR { return nil }
          return try SecretFile.text(of: path, for: "s3://")
        })
    } catch {
      throw error as? UsageError ?? UsageError("s3://: \(error)")
    }
  }
}
