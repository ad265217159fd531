import BlobHTTP
import BlobMedia
import BlobUpload
import Blobs

/// Where the system's background uploader sends photos: a folder of a server that takes the bare bytes of a file, such as
/// `fullbore serve`, and the requests for it.
public struct PhotoJobDestination: Sendable {
  /// The URL of the folder, which ends with a slash.
  public let folder: HTTPURL
  private let method: String
  /// The version of the photo. It is for us and not for the server: the system gives the request back with the job's
  /// result, which is then known to be that of this version.
  static let versionField = "Fullbore-Photo-Version"
  static let createdField = "X-OC-MTime"
  /// A digest of the account, by which the result of a job is known to be that of this account.
  static let accountField = "Fullbore-Photo-Account"
  /// The user who is signed in at present; nil: no user is.
  let session: @Sendable () -> PhotoJobSession?
  private let interopVersion: Int?
  private let path: @Sendable (_ asset: PhotoAsset, _ name: String) -> String

  /// - Parameters:
  ///   - folder: must begin with the extension's `BackgroundUploadURLBase`, or the system refuses it.
  ///   - method: POST or PUT. With PUT, a photo that was edited replaces the file of its earlier version (`If-Match: *`): if
  ///     that was moved away at the server, it is refused (412) each time. POST stores it anew.
  ///   - account: the user whose photos are in the folder, as `UploadDestination.account`: what another account has sent does
  ///     not count as sent for this one. nil: all users count as one. It is that of this value: if users may sign in and out
  ///     while the process lives, give `session` instead.
  ///   - headers: is called for each request and at the beginning of a run, so that a token can be renewed. Its fields go to this
  ///     folder's origin only. The system keeps them with the job until the job is acknowledged.
  ///   - interopVersion: `Upload-Draft-Interop-Version`, for servers that must find it. nil leaves the field to the system,
  ///     which speaks the protocol and knows its own version.
  ///   - path: a path below the folder, for a file of an asset. nil: `<asset>/<name>`, as in `A1B2…/IMG_0001.HEIC`. Paths
  ///     of two files must differ: where they do not, the second one gets the asset's identifier before it, and a number if
  ///     that is taken as well.
  public init(
    _ folder: HTTPURL, method: String = "POST", interopVersion: Int? = nil, account: String? = nil,
    headers: @escaping @Sendable () -> HTTPHeaders = { [:] },
    path: (@Sendable (_ asset: PhotoAsset, _ name: String) -> String)? = nil
  ) {
    self.init(
      folder, method: method, interopVersion: interopVersion,
      session: { PhotoJobSession(account: account, headers: headers()) }, path: path)
  }

  /// For apps whose users sign in and out. The parameters are those of the other initializer, and:
  /// - `session`: who is signed in at present, with the header fields for the requests of that user; nil: nobody is, and a
  ///   run registers nothing. Called as `headers`. A run that finds another user in its middle ends there; the next one is that
  ///   user's.
  public init(
    _ folder: HTTPURL, method: String = "POST", interopVersion: Int? = nil,
    session: @escaping @Sendable () -> PhotoJobSession?,
    path: (@Sendable (_ asset: PhotoAsset, _ name: String) -> String)? = nil
  ) {
    self.folder = folder.folder.strict.normalized
    self.method = method
    self.interopVersion = interopVersion
    self.session = session
    self.path = path ?? { asset, name in PhotoPath.usual(asset.id, name).description }
  }

  /// Represents the folder and an account, of which `account` is the digest, in the ledger.
  func place(of account: String?) -> String { JournalJob.key(folder.text, account) }

  /// The URLs for a file, in the order in which they are tried. One of them is free, unless an asset has 64 files.
  func urls(_ asset: PhotoAsset, _ name: String) -> LazyMapCollection<Range<Int>, HTTPURL> {
    let (path, asset) = (path(asset, name), PhotoPath.folder(asset.id))
    return (0..<65).lazy.map { [folder] number in
      let alternative = number == 0 ? path : number == 1 ? "\(asset)/\(path)" : "\(asset)-\(number)/\(path)"
      return folder.appending(pathBytes: PhotoPath.safe(alternative)).normalized
    }
  }

  /// nil: the URL is not below the folder, so nothing of ours may go there. `replaces`: this version takes the place of an
  /// earlier one. RFC 9110 §13.1.1.
  func request(
    _ url: HTTPURL, of session: PhotoJobSession, version: String? = nil, created: Int64? = nil, replaces: Bool
  ) -> HTTPRequest? {
    guard url.origin == folder.origin, url.path.hasPrefix(folder.path) else { return nil }
    var request = HTTPRequest(method, url, session.headers)
    if let interopVersion { request.headers["Upload-Draft-Interop-Version"] = "\(interopVersion)" }
    // To a POST without a type, the system adds that of a form.
    if request.headers["Content-Type"] == nil {
      request.headers["Content-Type"] = ContentType.of(BytePath(url.lastComponent))
    }
    if replaces { request.headers["If-Match"] = "*" }
    if let created, created > 0 { request.headers[Self.createdField] = String(created) }
    if let account = session.digest { request.headers[Self.accountField] = account }
    if let version, !version.isEmpty { request.headers[Self.versionField] = version }
    return request
  }
}

/// The user who is signed in to an app, and the header fields for the requests of that user.
public struct PhotoJobSession: Sendable {
  /// The name or number of the user, which does not change; nil: all users count as one.
  public var account: String?
  /// The header fields, for example with a token.
  public var headers: HTTPHeaders

  /// Creates a session. `account` nil: all users count as one.
  public init(account: String?, headers: HTTPHeaders) {
    self.account = account
    self.headers = headers
  }

  /// Represents the account in the ledger and in requests; nil: none is known.
  var digest: String? { JournalJob.digest(ofAccount: account) }
}
