import BlobHTTP
import Synchronization

/// What all requests of a server share.
final class Service: Sendable {
  let options: ServerOptions
  let store: any UploadStore
  let uploads: Uploads
  let workers: Workers
  let digestReader: DigestReader
  /// List folders, which may have any number of names: what arrives does not wait for them either.
  private let listers = Workers(threads: 2)
  /// Pages of folders that are made or sent at a time, and their bytes. Each is in memory until its client has read it.
  private let pages = Allowance(64)
  private let pageBytes = Allowance(64 << 20)
  private let tidying = PeriodicTask()
  /// Requests that are not answered yet.
  let requests = Atomic(0)
  let digests = KnownDigests()
  let hosts: HostRule

  init(_ options: ServerOptions, _ store: any UploadStore, _ hosts: HostRule) {
    self.options = options
    self.store = store
    self.hosts = hosts
    digestReader = DigestReader(store, digests)
    workers = Workers(threads: 8)
    uploads = Uploads(
      store, workers, maxSize: options.maxSize, maxUnfinished: options.maxUnfinished, expire: options.expire)
  }

  /// Begins what happens without being asked: expiry, and the publishing of what a kill has left complete.
  func start() {
    let interval = min(.seconds(60), max(.milliseconds(50), options.expire / 4))
    tidying.start(every: interval) { [workers, uploads] in workers.submit { uploads.tidy() } }
    workers.submit { [uploads] in
      uploads.tidy()
      uploads.publishComplete()
    }
  }

  /// Ends the threads, once all that was asked of them is done.
  func stop() {
    tidying.stop()
    digestReader.finish()
    listers.finish()
    workers.finish()
  }

  /// Runs `work` on a worker while the connection is suspended.
  func onWorker(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan { on(workers, work) }

  /// As `onWorker`, for the page of a folder. Throws 503 where there are too many of them, or all together are too large.
  func onLister(_ work: @escaping @Sendable () throws(ServerError) -> Reply) throws(ServerError) -> Plan {
    guard let place = pages.take() else { throw Self.tooManyPages }
    return on(listers) { [pageBytes] () throws(ServerError) in
      var reply = try work()
      guard let bytes = pageBytes.take(reply.size) else { throw Self.tooManyPages }
      reply.permits = [place, bytes]
      return .reply(reply)
    }
  }

  private static var tooManyPages: ServerError {
    var error = ServerError(503, "too many clients read lists of folders; try again in a moment")
    error.headers["Retry-After"] = "5"
    return error
  }

  private func on(_ workers: Workers, _ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan {
    .later { decided in
      workers.submit {
        do throws(ServerError) {
          decided(try work())
        } catch {
          decided(.refuse(error))
        }
      }
    }
  }

  /// Adds what every answer carries.
  func completed(_ reply: Reply, to request: Request) -> Reply {
    var reply = reply
    if request.headers["Tus-Resumable"] != nil || request.method == "OPTIONS" {
      reply.headers["Tus-Resumable"] = Tus.version
    }
    CrossOrigin.complete(&reply, to: request, self)
    return reply
  }
}
