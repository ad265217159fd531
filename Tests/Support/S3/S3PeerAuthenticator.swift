import BlobTesting
import BlobCrypto
import BlobUpload
import Blobs
import Platform

/// Accepts only requests with a valid signature whose body matches it.
struct S3PeerAuthenticator {
  let options: S3Peer.Options

  init(_ options: S3Peer.Options) { self.options = options }

  var now: Int64 { Int64(time(nil)) + options.clockAhead }

  /// The body without its `aws-chunked` framing.
  func body(of request: S3PeerRequest) throws -> [UInt8] {
    let payload = try checkSignature(request)
    switch payload {
    case S3Signature.unsignedPayload: break
    case S3Signature.unsignedTrailer: return try checkTrailer(request)
    default:
      if Digest.hex(of: request.body, .sha256) != payload { throw S3PeerError(400, "XAmzContentSHA256Mismatch") }
    }
    // The checksum of a completion request is that of the object, not of the body.
    if request.method == "PUT" { try checkChecksums(request.fields, request.body) }
    return request.body
  }

  private func checkSignature(_ request: S3PeerRequest) throws -> String {
    guard let field = request.fields["authorization"], field.hasPrefix(S3Signature.algorithm + " ") else {
      throw S3PeerError(403, "AccessDenied")
    }
    var items: [Substring: String] = [:]
    for item in field.dropFirst(S3Signature.algorithm.count + 1).split(separator: ",") {
      let pair = item.trimmed.split(separator: "=", maxSplits: 1)
      if pair.count == 2 { items[pair[0]] = String(pair[1]) }
    }
    let credential = items["Credential"]?.split(separator: "/").map(String.init) ?? []
    guard credential.count == 5, let signed = items["SignedHeaders"], let value = items["Signature"],
      let timestamp = request.fields["x-amz-date"], let payload = request.fields["x-amz-content-sha256"]
    else { throw S3PeerError(400, "AuthorizationHeaderMalformed") }
    if credential[2] != options.region {
      throw S3PeerError(400, "AuthorizationHeaderMalformed", "<Region>\(options.region)</Region>")
    }
    let signature = S3Signature(timestamp: timestamp, region: options.region)
    if credential[0] != options.credentials.accessKey { throw S3PeerError(403, "InvalidAccessKeyId") }
    if credential.dropFirst().joined(separator: "/") != signature.scope {
      throw S3PeerError(400, "AuthorizationHeaderMalformed")
    }
    let token = request.fields["x-amz-security-token"]
    if let token, token == options.expiredToken { throw S3PeerError(400, "ExpiredToken") }
    if token != options.credentials.sessionToken { throw S3PeerError(403, "InvalidToken") }
    if abs(Self.seconds(timestamp) - now) > 900 { throw S3PeerError(403, "RequestTimeTooSkewed") }

    let names = signed.split(separator: ";").map(String.init)
    let must = request.fields.keys.filter { $0 == "host" || $0.hasPrefix("x-amz-") }
    if !Set(must).isSubset(of: names) { throw S3PeerError(403, "AccessDenied") }
    let fields = names.map { (name: $0, value: request.fields[$0] ?? "") }
    let canonical = S3Signature.canonicalRequest(
      request.method, path: request.path, query: request.rawQuery, fields: fields, payload: payload)
    let own = S3Signature.sign(signature.stringToSign(canonical), key: signature.key(options.credentials.secretKey))
    if own != value { throw S3PeerError(403, "SignatureDoesNotMatch") }
    return payload
  }

  /// Decodes `aws-chunked` with a trailer: a hexadecimal length and bytes for each chunk, an empty chunk, then the
  /// checksum.
  private func checkTrailer(_ request: S3PeerRequest) throws -> [UInt8] {
    let incomplete = S3PeerError(400, "IncompleteBody")
    guard request.fields["content-encoding"]?.contains("aws-chunked") == true,
      let announced = request.fields["x-amz-trailer"],
      let length = request.fields["x-amz-decoded-content-length"].flatMap({ Int($0) })
    else { throw S3PeerError(411, "MissingContentLength") }
    var rest = request.body[...]
    func line() throws -> String {
      guard let range = rest.firstRange(of: Array("\r\n".utf8)) else { throw incomplete }
      defer { rest = rest[range.upperBound...] }
      return String(decoding: rest[..<range.lowerBound], as: UTF8.self)
    }
    var body: [UInt8] = []
    while true {
      guard let size = Int(try line(), radix: 16), size >= 0 else { throw incomplete }
      if size == 0 { break }
      guard rest.count >= size + 2 else { throw incomplete }
      body += rest.prefix(size)
      rest = rest.dropFirst(size)
      if try !line().isEmpty { throw incomplete }
    }
    let trailer = try line().split(separator: ":", maxSplits: 1).map(String.init)
    guard body.count == length, trailer.count == 2, trailer[0] == announced, try line().isEmpty, rest.isEmpty else {
      throw incomplete
    }
    try checkChecksums([trailer[0]: trailer[1]], body)
    return body
  }

  private func checkChecksums(_ fields: [String: String], _ body: [UInt8]) throws {
    for (name, value) in fields where name.hasPrefix("x-amz-checksum-") {
      guard let algorithm = Digest.Algorithm(String(name.dropFirst(15))), name != "x-amz-checksum-algorithm" else {
        continue
      }
      if S3Text.base64(Digest.value(of: body, algorithm)) != value { throw S3PeerError(400, "BadDigest") }
    }
  }

  /// Parses `20130524T000000Z`.
  private static func seconds(_ timestamp: String) -> Int64 {
    let digits = timestamp.filter(\.isNumber).compactMap { $0.wholeNumberValue.map { Int32($0) } }
    guard digits.count == 14 else { return 0 }
    func number(_ range: Range<Int>) -> Int32 { digits[range].reduce(0) { $0 * 10 + $1 } }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (number(0..<4) - 1900, number(4..<6) - 1, number(6..<8))
    (date.tm_hour, date.tm_min, date.tm_sec) = (number(8..<10), number(10..<12), number(12..<14))
    return Int64(timegm(&date))
  }
}

/// Formats dates for HTTP header fields.
enum HTTPDateText {
  static func text(_ seconds: Int64) -> String {
    var seconds = time_t(seconds)
    var date = tm()
    gmtime_r(&seconds, &date)
    let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(days[Int(date.tm_wday)]), \(two(date.tm_mday)) \(months[Int(date.tm_mon)]) \(date.tm_year + 1900) "
      + "\(two(date.tm_hour)):\(two(date.tm_min)):\(two(date.tm_sec)) GMT"
  }
}
