import BlobCrypto
import BlobHTTP
import Blobs

/// Objects of S3 and compatible servers: a small one is sent with one PUT, a large one in numbered parts, many at the
/// same time.
///
/// https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
public struct S3Multipart: ReplacingProtocol {
  public let name = "s3"

  /// Properties of new objects, and how they are divided into parts.
  public struct Options: Sendable, Hashable {
    /// `STANDARD_IA` and the like; nil: the bucket's default.
    public var storageClass: String?
    /// nil: the bucket's default.
    public var encryption: S3Encryption?
    /// `x-amz-meta-` fields, without that prefix.
    public var metadata: [String: String]
    /// Each request carries this checksum, and the server stores only bytes that match it. One of
    /// `Digest.Algorithm.s3`; SHA-256 is also part of the signature.
    public var checksum: Digest.Algorithm
    /// Objects up to this length in bytes are sent with one PUT.
    public var wholeUpTo: Int64
    /// Default size of a part in bytes.
    public var partSize: Int64
    /// Servers reject parts smaller than this, in bytes, except for the last one.
    public var smallestPart: Int64
    /// Length of the largest object in bytes; nil: 48.8 TiB at Amazon, 5 TiB elsewhere.
    public var largest: Int64?

    /// Creates options. Sizes are in bytes; the properties say what each option does.
    public init(
      storageClass: String? = nil, metadata: [String: String] = [:], checksum: Digest.Algorithm = .crc32c,
      wholeUpTo: Int64 = 16 << 20, partSize: Int64 = 8 << 20, smallestPart: Int64 = 5 << 20, largest: Int64? = nil,
      encryption: S3Encryption? = nil
    ) {
      precondition(Digest.Algorithm.s3.contains(checksum))
      self.storageClass = storageClass
      self.encryption = encryption
      self.metadata = metadata
      self.checksum = checksum
      self.wholeUpTo = wholeUpTo
      self.partSize = partSize
      self.smallestPart = smallestPart
      self.largest = largest
    }
  }

  /// The path of the bucket's URL, with a trailing slash: `/` if the host name contains the bucket, else `/bucket/`.
  public let bucketPath: String
  /// How objects are created.
  public var options: Options
  let signer: S3Signer
  var vouching: S3ChecksumPlacement
  let acquaintance = S3ServerFacts()
  let conditions = S3Conditions()
  /// The check of the bucket that runs while objects are sent.
  var question: DeferredProbe?
  /// The server is Amazon's own, with its limits.
  var isAmazon: Bool

  /// Creates the protocol for one bucket. `bucketPath` must begin and end with a slash.
  public init(bucketPath: String, signer: S3Signer, options: Options = Options(), isAmazon: Bool = false) {
    precondition(bucketPath.hasPrefix("/") && bucketPath.hasSuffix("/"))
    self.bucketPath = bucketPath
    self.options = options
    self.signer = signer
    self.isAmazon = isAmazon
    vouching = isAmazon ? .trailer : .header
  }

  public var traits: UploadTraits {
    UploadTraits(
      numbersParts: true, carriesMetadata: true, checksums: Digest.Algorithm.s3, provesVersions: true, sign: signature)
  }

  /// The highest part number; the first is 1.
  static let mostParts: Int64 = 10_000

  var limits: PartLimits {
    PartLimits(
      smallest: options.smallestPart, largest: 5 << 30, usual: options.partSize, count: Int(Self.mostParts),
      isParallel: true,
      needsLength: true, firstPart: options.wholeUpTo,
      total: options.largest ?? (isAmazon ? Self.mostParts * (5 << 30) : 5 << 40))
  }

  /// Lists one name in the bucket: wrong keys, a wrong bucket and a wrong region are found before the first byte is
  /// sent.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    // A name with control characters would make the list invalid XML, unless the names are encoded.
    let request = HTTPRequest(
      "GET", bucket(at: target.endpoint).withQuery("encoding-type=url&list-type=2&max-keys=1"))
    let response = try await send(request, nil, with)
    if response.isSuccess {
      // A server that responds to every URL with a web page is recognized here: S3 returns a ListBucketResult.
      if let list = XMLTree(response.body), list.name.hasPrefix("ListBucket") { return UploadOffer(self, limits) }
      throw UploadError(
        .giveUp, .destination,
        "GET \(request.url): answered \(response.status) without a list of the bucket, as S3 never does. Is the endpoint "
          + "right?", status: response.status)
    }
    let refusal = S3ErrorResponse(response)
    // Keys that may only write cannot list the bucket, and some servers list in another way.
    if let region = refusal?.region, region != signer.region {
      var error = UploadError(request, response, s3: refusal, signer)
      error.recovery = .giveUp
      error.cause = S3OtherRegion(region: region)
      throw error
    }
    let isOnlyUnlisted = [400, 403, 405, 501].contains(response.status) && refusal?.isGeneral != true
    if isOnlyUnlisted { return UploadOffer(self, limits) }
    throw UploadError(request, response, s3: refusal, signer)
  }

  func bucket(at endpoint: HTTPURL) -> HTTPURL {
    // A path always resolves against a URL.
    endpoint.resolve(bucketPath)!
  }

  // MARK: Whole objects

  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    try check(target)
    if let first {
      precondition(first.part.isLast && first.part.start == 0, "a small object is one part")
      return .finished(try await put(target, first.body, with))
    }
    if !target.overwrite {
      // For a large object, a HEAD request is cheap in comparison, whatever the server is.
      let there =
        asksFirst(overwriting: false) ? try await look(at: target.url, with) : try await find(target.url, with)
      if let there { return .finished(try await claim(there, target.url, with)) }
    }
    return try await begin(target, with)
  }

  private func put(
    _ target: UploadTarget, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let asks = asksFirst(overwriting: target.overwrite)
    if asks, let there = try await look(at: target.url, with) { return try await claim(there, target.url, with) }
    let request = put(target)
    var response = try await send(request, vouchedBy: body, with).0
    guard response.saysStored else { return try await afterRefusal(request, response, target.url, with) }
    try checkStored(request, response)
    // If the name was checked and is free, the server does not report success for everything.
    if target.overwrite { try await question?.answered() }
    if asks, let length = body.length, body.canBeReadTwice, conditions.beginTrial(with: length) {
      response = try await tryCondition(request, body, with) ?? response
    }
    return stored(target, response)
  }

  func put(_ target: UploadTarget) -> HTTPRequest {
    var request = HTTPRequest("PUT", target.url, objectFields(target))
    request.replace(only: target.overwrite ? target.replaced : .nothing)
    return request
  }

  func stored(_ target: UploadTarget, _ response: HTTPResponse) -> UploadResult {
    UploadResult(location: target.url.description, state: Self.state(response.headers["ETag"]))
  }

  /// Type, storage class, encryption and metadata. Only the requests that create an object, `PutObject` and
  /// `CreateMultipartUpload`, carry them.
  func objectFields(_ target: UploadTarget) -> HTTPHeaders {
    var fields: HTTPHeaders = ["Content-Type": target.contentType]
    fields["x-amz-storage-class"] = options.storageClass
    fields["x-amz-server-side-encryption"] = options.encryption?.algorithm
    fields["x-amz-server-side-encryption-aws-kms-key-id"] = options.encryption?.keyID
    // The user's options take precedence. Field values are ASCII: other characters are percent-encoded.
    let encoded = target.metadata.mapValues { PercentCoding.field($0) }
    for (name, value) in options.metadata.merging(encoded, uniquingKeysWith: { asked, _ in asked })
      .sorted(by: { $0.key < $1.key })
    {
      fields.add("x-amz-meta-\(name)", value)
    }
    if let time = target.modificationTime, options.metadata[ModificationTime.key] == nil,
      target.metadata[ModificationTime.key] == nil
    {
      fields.add("x-amz-meta-\(ModificationTime.key)", time.text)
    }
    return fields
  }

  /// Sends a body, adds its checksum to the fields of `request`, and compares the checksum in the response.
  func send(
    _ request: HTTPRequest, vouchedBy slice: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> (HTTPResponse, S3Body) {
    // A body that is read once has no checksum.
    let canSkipChecksum = canSkipChecksum(request.url) && slice.canBeReadTwice
    if !canSkipChecksum || acquaintance.heedsChecksums != nil {
      return try await send(request, slice, canSkipChecksum, with)
    }
    return try await acquaintance.asking(with: slice.length ?? 0) { () async throws(UploadError) in
      try await send(request, slice, canSkipChecksum, with)
    }
  }

  /// Whether the checksum may be left out if the server ignores it: reading a body for it would be useless, unless the
  /// user asked for it.
  func canSkipChecksum(_ url: HTTPURL) -> Bool {
    url.scheme == "https" && vouching == .header && options.checksum == .crc32c
  }

  /// TLS protects the bytes on the way, so their digest need not be signed.
  func signsBodies(at url: HTTPURL) -> Bool { url.scheme != "https" || options.checksum == .sha256 }

  private func send(
    _ request: HTTPRequest, _ slice: BlobSlice, _ canSkipChecksum: Bool, _ with: UploadContext
  ) async throws(UploadError) -> (HTTPResponse, S3Body) {
    let skipsChecksum = canSkipChecksum && acquaintance.heedsChecksums == false
    let body = try await S3Body.make(
      slice, options.checksum, skipsChecksum ? .none : vouching, signs: signsBodies(at: request.url))
    var vouched = request
    vouched.headers.add(contentsOf: body.headers)
    let response = try await send(vouched, body.slice, prepare: body.prepare, with)
    if response.isSuccess {
      let isTold = body.prepare != nil || vouched.headers[options.checksum.s3Field] != nil
      try checkEcho(vouched, response, body.checksum, isTold: isTold)
    }
    if skipsChecksum, S3ErrorResponse(response)?.wantsChecksum == true {
      // If objects are locked, a server requires checksums although it does not return them.
      acquaintance.demandChecksums()
      with.events.sent(-Int(clamping: body.slice.length ?? 0))
      return try await send(request, slice, canSkipChecksum, with)
    }
    return (response, body)
  }

  /// Throws if the server has computed another checksum. `isTold`: the checksum was sent before the body.
  private func checkEcho(
    _ request: HTTPRequest, _ response: HTTPResponse, _ value: [UInt8]?, isTold: Bool
  ) throws(UploadError) {
    let echo = response.headers[options.checksum.s3Field]
    if isTold { acquaintance.note(echo: echo) }
    guard let value, let echo, echo != base64(value) else { return }
    throw UploadError(
      .resync, .file,
      "\(request.method) \(request.url): the server has other bytes: their \(options.checksum) is \(echo.shownLine(64)), "
        + "not \(base64(value))")
  }

  static func state(_ tag: String?) -> [String: String] { tag.map { ["etag": $0] } ?? [:] }

  /// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
  func check(_ target: UploadTarget) throws(UploadError) {
    func refuse(_ why: String) -> UploadError {
      UploadError(.giveUp, .file, "\(target.path): \(why), which S3 does not take as a name")
    }
    let key = Array(target.url.key(in: bucketPath))
    if key.isEmpty { throw refuse("it is empty") }
    if key.count > 1024 { throw refuse("with its folders it has \(key.count) bytes, over 1,024") }
    guard let text = String(validating: key, as: UTF8.self) else { throw refuse("it is not UTF-8") }
    // Clients, proxies and servers interpret these in different ways.
    if text.split(separator: "/", omittingEmptySubsequences: false).contains(where: { $0 == "." || $0 == ".." }) {
      throw refuse("it has '.' or '..' for a folder")
    }
    if text.utf8.contains(0) { throw refuse("it has a NUL in it") }
  }

  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    guard let there = try await find(target.url, with) else { return false }
    return target.length == nil || there.length == target.length
  }
}

extension HTTPURL {
  /// The part of the path after the bucket's, percent-decoded.
  func key(in bucketPath: String) -> [UInt8] { PercentCoding.decoded(path.utf8.dropFirst(bucketPath.utf8.count)) }
}

extension HTTPHeaders {
  mutating func add(contentsOf other: HTTPHeaders) {
    for (name, value) in other.fields { add(name, value) }
  }
}
