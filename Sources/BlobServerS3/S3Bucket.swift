import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

/// The place in a bucket where a server stores its files, for threads that may block.
struct S3Bucket: Sendable {
  let s3: S3Multipart
  let context: UploadContext
  /// Ends in a slash.
  let place: HTTPURL
  /// For bytes on their way to the bucket.
  let memory = MemoryShares(total: 4 << 20, within: 16 << 10...128 << 10)

  init(_ destination: UploadDestination, over transport: any Transport) {
    guard let s3 = destination.uploadProtocol as? S3Multipart else { preconditionFailure("the destination is not S3") }
    self.s3 = s3
    context = UploadContext(destination, over: transport)
    place = destination.endpoint
  }

  /// The object of a file.
  func url(of path: ServedPath) -> HTTPURL { path.isRoot ? place : place.appending(pathBytes: path.bytes) }

  /// nil: no object has this name.
  func head(of path: ServedPath) throws(ServerError) -> S3Head? {
    let url = self.url(of: path)
    return try wait { s3, context async throws(UploadError) in try await s3.head(of: url, context) }
  }

  /// The beginning of the names of all objects in a folder.
  func folder(_ path: ServedPath) -> HTTPURL {
    path.isRoot ? place : place.appending(pathBytes: path.bytes + [UInt8(ascii: "/")])
  }

  /// The object of a file, with its media type and modification time. `old`: the object that it replaces.
  func target(
    _ path: ServedPath, length: Int64?, _ modified: ModificationTime?, replacing old: S3Head? = nil
  ) -> UploadTarget {
    var target = UploadTarget(
      endpoint: place, url: url(of: path), path: BytePath(path.bytes), length: length,
      contentType: MediaType(path.name).text, overwrite: old != nil)
    target.modified = modified?.sinceEpoch
    if let old { target.replaced = .version(old.tag) }
    return target
  }

  /// The part of an object's URL that follows the URL of this place. Another server may know the place by another URL.
  func name(of url: HTTPURL) -> String { String(url.text.utf8.dropFirst(place.text.utf8.count)) ?? "" }

  /// The object with this name; nil: the name is none.
  func url(named name: String) -> HTTPURL? { HTTPURL(place.text + name) }

  /// The session, so that another server can use it.
  func shared(_ session: UploadSession, of target: UploadTarget) -> UploadSession {
    var session = session
    session.state[Self.nameKey] = name(of: target.url)
    return session
  }

  /// The multipart upload, as this server reaches it; nil: none was begun.
  func session(of stored: StoredBytes) -> UploadSession? {
    guard var session = stored.session else { return nil }
    if let name = session.state[Self.nameKey], let url = url(named: name) { session.state["url"] = url.text }
    return session
  }

  private static let nameKey = "name"

  /// The object of bytes of an upload that do not fill a part yet. No client can name it.
  func tail(of id: UploadID, _ name: TailName) -> HTTPURL {
    place.appending(pathBytes: Array("\(ServedPath.storeName)/\(name.text(id))".utf8))
  }

  func tailTarget(of id: UploadID, _ name: TailName, length: Int64) -> UploadTarget {
    let url = tail(of: id, name)
    return UploadTarget(endpoint: place, url: url, path: BytePath("\(id).tail"), length: length, overwrite: true)
  }

  /// The bytes of all files. Throws 503 once `interruption` is cancelled.
  func totalLength(until interruption: Cancellation) throws(ServerError) -> Int128 {
    var (sum, cursor): (Int128, S3Cursor?) = (0, nil)
    repeat {
      if interruption.isCancelled { throw ServerError(503, "the server is stopping") }
      let page = try wait { [place, cursor] s3, context async throws(UploadError) in
        try await s3.totalLength(below: place, without: ServedPath.storeName.bytes, after: cursor, context)
      }
      guard let page else {
        throw ServerError("--max-total: the server of the bucket does not list its objects, so their sum is not known")
      }
      sum += Int128(page.bytes)
      cursor = page.next
    } while cursor != nil
    return sum
  }

  /// Sends a request that stores nothing, and whose outcome shows whether files can be stored.
  func probe() async {
    // The transport has noted the outcome.
    try? await s3.probe(place.appending(pathBytes: Array("\(ServedPath.storeName)/probe".utf8)), context)
  }

  /// Runs `work` as a task, and blocks until it ends.
  func wait<Result: Sendable>(
    _ work: @escaping @Sendable (S3Multipart, UploadContext) async throws(UploadError) -> Result
  ) throws(ServerError) -> Result {
    do throws(UploadError) { return try start(work).value() } catch { throw ServerError(storing: error) }
  }

  /// Runs `work` as a task, which ends by itself.
  func start<Result: Sendable>(
    _ work: @escaping @Sendable (S3Multipart, UploadContext) async throws(UploadError) -> Result
  ) -> RunningRequest<Result> {
    RunningRequest { [s3, context] () async throws(UploadError) in try await work(s3, context) }
  }
}

/// A request that runs as a task, and for whose result another thread waits.
final class RunningRequest<Value: Sendable>: Sendable {
  private let result: Monitor<Result<Value, UploadError>?>
  private let task: Task<Void, Never>

  init(_ work: @escaping @Sendable () async throws(UploadError) -> Value) {
    let result = Monitor<Result<Value, UploadError>?>(nil)
    self.result = result
    task = Task {
      do throws(UploadError) {
        let value = try await work()
        result.update { $0 = .success(value) }
      } catch {
        result.update { $0 = .failure(error) }
      }
    }
  }

  /// Blocks until the request has ended.
  func value() throws(UploadError) -> Value { try result.wait { $0 }.get() }

  func cancel() { task.cancel() }
}

extension ServerError {
  /// The error for a client whose upload the bucket has lost. The upload ends, and the client begins anew.
  init(ofLostUpload error: UploadError) {
    self.init(410, "the place where this server stores its files has not kept the upload: \(error.message)")
  }

  /// The error for a client whose file the bucket's server has refused for its name; nil: that is not the reason. Not every
  /// server takes control characters.
  init?(refusing name: BytePath, _ error: UploadError) {
    guard let status = error.status, [400, 404, 405].contains(status),
      name.bytes.contains(where: { $0 < 32 || $0 == 127 })
    else { return nil }
    self.init(400, "\(name): the place where this server stores its files takes no such name (\(error.message))")
  }

  /// The error for a client if the bucket's server has answered with an error, or not at all.
  init(storing error: UploadError) {
    // The bucket has ended the multipart upload, perhaps by a lifecycle rule, so the client must begin anew.
    if error.recovery == .restart {
      self.init(ofLostUpload: error)
      return
    }
    let isTemporary =
      switch error.recovery {
      case .retry, .resync, .adapt: true
      case .restart, .shrink, .giveUp: error.side == .source || error.side == .cancelled
      }
    // The client's request was correct, so the status is at least 500, and its upload stays.
    self.init(isTemporary ? 503 : 500, "the place where this server stores its files failed: \(error.message)")
    if isTemporary { headers["Retry-After"] = "2" }
  }
}
