import BlobHTTP

/// A job of the system's background uploader, as `PHAssetResourceUploadJob` describes it.
public struct PhotoJob: Sendable, Hashable {
  /// The state of a job, as the system reports it.
  public enum State: Sendable, Hashable {
    /// The system has not ended the job.
    case underWay
    /// The system reports that the upload has succeeded.
    case succeeded
    /// The reason, and whether the system still takes a retry of this job, of which it allows one.
    case failed(String, mayRetry: Bool)
  }
  /// The job's `localIdentifier`.
  public let id: String
  /// The URL of its destination; empty: the system does not tell it. Such a job is acknowledged once it has ended.
  public let url: String
  /// The state of the job, as the system reported it when the job was read.
  public let state: State
  /// The version of the photo that the job was made for, and when the picture was taken, as the job's request has them;
  /// nil: the request does not say.
  public let version: String?
  /// When the picture was taken, in seconds since 1970; nil: the request does not say.
  public let created: Int64?
  /// A digest of the account that the job was made for; nil: the request has none.
  public internal(set) var account: String?

  /// - `field`: returns the value of a field of the job's request; nil: the request has no such field.
  public init(id: String, url: String, state: State, field: (_ name: String) -> String?) {
    self.id = id
    self.url = url
    self.state = state
    version = field(PhotoJobDestination.versionField)
    created = field(PhotoJobDestination.createdField).flatMap { Int64($0) }
    account = field(PhotoJobDestination.accountField)
  }
}

/// An asset of the photo library.
public struct PhotoAsset: Sendable, Hashable {
  /// The asset's `localIdentifier`.
  public let id: String
  /// Another version has another text. It is made of the asset's modification date.
  public let version: String
  /// When the picture was taken, in seconds since 1970; nil: unknown.
  public let created: Int64?

  /// Creates a description of an asset. `created` is in seconds since 1970; nil: unknown.
  public init(id: String, version: String, created: Int64?) {
    self.id = id
    self.version = version
    self.created = created
  }
}

/// Why the system has refused a call that concerns a job.
public struct PhotoJobError: Error, Sendable, CustomStringConvertible {
  /// The kind of the refusal, by which the caller decides what to do.
  public enum Code: Sendable {
    /// There is no room for another job until one is acknowledged. The call has changed nothing.
    case limit
    /// The asset, its file or the job is gone. The call has changed nothing.
    case gone
    /// Whether the call has changed something is unknown.
    case failed
  }
  /// The kind of the refusal.
  public let code: Code
  public let description: String

  /// Creates an error with the system's description of it.
  public init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}

/// The photo library and the system's jobs, as far as `PhotoUploads` needs them. `PhotoKitJobs` is the one that calls
/// PhotoKit. All calls may block; they come from one thread.
public protocol PhotoJobSystem: Sendable {
  /// The most jobs that may be unacknowledged: those under way, and those that have succeeded or failed.
  var limit: Int { get }
  /// Whether `jobs` also returns the jobs under way. Before iOS 26.5 the system lists only those that have ended.
  var listsJobsUnderWay: Bool { get }
  /// The jobs of this app that are not acknowledged.
  func jobs() throws(PhotoJobError) -> [PhotoJob]
  /// Lets the system forget a job that has succeeded or failed.
  func acknowledge(_ job: PhotoJob) throws(PhotoJobError)
  /// Ends a job under way, which the system then forgets by itself. Only jobs that `jobs` has returned are cancelled.
  func cancel(_ job: PhotoJob) throws(PhotoJobError)
  /// Lets the system send a failed job once more. nil: with the request it was created with.
  func retry(_ job: PhotoJob, to destination: HTTPRequest?) throws(PhotoJobError)
  /// Registers a job that uploads one resource of an asset with this request. It may block.
  func create(_ resource: AssetResource, of asset: PhotoAsset, to destination: HTTPRequest) throws(PhotoJobError)
  /// A function that returns the next assets each time it is called, and an empty array after the last.
  func assets() throws(PhotoJobError) -> () -> [PhotoAsset]
  /// Throws `.gone` when the asset was deleted.
  func resources(of asset: PhotoAsset) throws(PhotoJobError) -> [AssetResource]
}
