import BlobHTTP
import Blobs
import Platform
import Synchronization

/// Signs requests with credentials that it does not reveal.
public final class S3Signer: Sendable {
  private struct State {
    var credentials: S3Credentials
    var region: String
    /// Seconds by which the server's clock is ahead of this machine's.
    var skew: Int64 = 0
    /// Counts the changes to any of these.
    var version = 0
    /// The second of the last signature.
    var second: (seconds: Int64, timestamp: String)?
    /// The signing key for a day and a region.
    var key: (day: Substring, region: String, value: [UInt8])?
  }
  private let state: Mutex<State>
  private let renewal: (@Sendable () -> S3Credentials?)?
  private let clock: @Sendable () -> Int64

  /// - `renewal`: called on any thread when a session token has expired; returns newer credentials from the same
  ///   origin, or nil.
  /// - `clock`: seconds since 1970.
  public init(
    _ credentials: S3Credentials, region: String, renewal: (@Sendable () -> S3Credentials?)? = nil,
    clock: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
  ) {
    state = Mutex(State(credentials: credentials, region: region))
    self.renewal = renewal
    self.clock = clock
  }

  /// The region that requests are signed for. It changes when the server names another one.
  public var region: String { state.withLock { $0.region } }

  /// Changes with the region, the clock and the credentials. A request signed with an older version may be rejected
  /// just because of that.
  var version: Int { state.withLock { $0.version } }

  /// Switches to the region that the bucket turned out to be in.
  func move(to region: String) {
    state.withLock { state in
      if state.region != region { state.version += 1 }
      state.region = region
    }
  }

  /// Adopts the server's time. false: the signer used this time already, within a minute, when it signed with
  /// `version`.
  func adjust(to seconds: Int64, since version: Int) -> Bool {
    state.withLock { state in
      if state.version != version { return true }
      let skew = seconds.subtractingClamped(clock())
      if -60 < skew.subtractingClamped(state.skew), skew.subtractingClamped(state.skew) < 60 { return false }
      state.skew = skew
      state.version += 1
      return true
    }
  }

  /// The difference between a server's time and the signer's, in seconds.
  func distance(to seconds: Int64) -> Int64 {
    state.withLock { state in
      let distance = clock().addingClamped(state.skew).subtractingClamped(seconds)
      return distance < 0 ? Int64(0).subtractingClamped(distance) : distance
    }
  }

  /// Obtains newer credentials. false: there are none. If credentials have changed since `version`, returns true: when
  /// many requests are rejected at once, the first one renews for all.
  func renew(since version: Int) -> Bool {
    if self.version != version { return true }
    guard let new = renewal?() else { return false }
    return state.withLock { state in
      if state.version != version { return true }
      if state.credentials == new { return false }
      state.credentials = new
      state.version += 1
      state.key = nil
      return true
    }
  }

  /// The secrets that must not be shown when a text of the server repeats them.
  var secrets: RequestSecrets { RequestSecrets(values: state.withLock { $0.credentials.secrets }) }

  /// Adds `x-amz-date`, `x-amz-content-sha256` if it is missing, and `Authorization`. Signs the host, the content type
  /// and all `x-amz-` fields.
  func sign(_ request: inout HTTPRequest) {
    let (signature, credentials, key) = now()
    request.headers["x-amz-date"] = signature.timestamp
    request.headers["x-amz-security-token"] = credentials.sessionToken
    let payload = request.headers["x-amz-content-sha256"] ?? S3Signature.emptyPayload
    request.headers["x-amz-content-sha256"] = payload
    let fields = Self.signedFields(of: request)
    let canonical = S3Signature.canonicalRequest(
      request.method, path: request.url.path, query: request.url.query, fields: fields, payload: payload)
    let value = S3Signature.sign(signature.stringToSign(canonical), key: key)
    request.headers["Authorization"] =
      "\(S3Signature.algorithm) Credential=\(credentials.accessKey)/\(signature.scope),"
      + "SignedHeaders=\(S3Signature.signedNames(fields)),Signature=\(value)"
  }

  /// The inputs for signatures in this second. The rest runs without the lock, because all workers sign.
  private func now() -> (S3Signature, S3Credentials, key: [UInt8]) {
    state.withLock { state in
      let seconds = clock().addingClamped(state.skew)
      if state.second?.seconds != seconds { state.second = (seconds, Self.timestamp(seconds)) }
      let signature = S3Signature(timestamp: state.second!.timestamp, region: state.region)
      let day = signature.timestamp.prefix(8)
      if state.key?.day != day || state.key?.region != state.region {
        state.key = (day, state.region, signature.key(state.credentials.secretKey))
      }
      return (signature, state.credentials, state.key!.value)
    }
  }

  private static func signedFields(of request: HTTPRequest) -> [(name: String, value: String)] {
    var fields = [(name: "host", value: request.headers["Host"] ?? request.url.authority)]
    for (name, value) in request.headers.fields {
      let name = name.lowercased()
      if name == "content-type" || name.hasPrefix("x-amz-") { fields.append((name, value)) }
    }
    return fields
  }

  /// In the basic format of ISO 8601, without separators.
  static func timestamp(_ seconds: Int64) -> String {
    var seconds = time_t(seconds)
    var date = tm()
    gmtime_r(&seconds, &date)
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(Int(date.tm_year) + 1900)\(two(date.tm_mon + 1))\(two(date.tm_mday))"
      + "T\(two(date.tm_hour))\(two(date.tm_min))\(two(date.tm_sec))Z"
  }
}

extension HTTPURL {
  /// As in the `Host` field. RFC 9110 §7.2.
  var authority: String { port == (scheme == "https" ? 443 : 80) ? host : "\(host):\(port)" }
}
