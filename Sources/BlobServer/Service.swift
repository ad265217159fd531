import BlobHTTP

/// The state shared by all requests of a server.
final class Service: Sendable {
  let options: ServerOptions
  let store: any UploadStore
  let uploads: Uploads
  let workers: Workers
  let digestReader: DigestReader
  /// Threads that list folders, which may have any number of entries; separate, so that uploads do not wait for them.
  private let listers = Workers(threads: 2)
  /// Limits the folder pages being generated or sent, and their total size in bytes. Each page is in memory until its
  /// client has read it.
  private let pages = Allowance(64)
  private let pageBytes = Allowance(64 << 20)
  /// Threads that list the files of archives, and read those whose checksums a range needs.
  private let archivers = Workers(threads: 2)
  /// Limits the archives that are made or sent, and their lists in bytes.
  let archives = Allowance(32)
  let archiveBytes = Allowance(64 << 20)
  /// Held while files are read whose checksums a range needs, which may take long: other archives need the other thread.
  let archiveReading = Allowance(1)
  let archiveSums = ArchiveSums()
  /// Threads that read files for QUERY.
  private let queriers = Workers(threads: 4)
  /// Limits the lists of names that are received or answered, in bytes.
  let queryBytes = Allowance(32 << 20)
  /// Limits what is kept of all forms until their responses have been sent, in bytes.
  let formBytes = Allowance(64 << 20)
  private let tidying = PeriodicTask()
  private let watching = PeriodicTask()
  static let workerThreads = 8
  let counters = Counters()
  let health = FolderHealth()
  let digests = KnownDigests()
  let hosts: HostRule
  let access: Access

  init(_ options: ServerOptions, _ store: any UploadStore, _ hosts: HostRule) {
    self.options = options
    self.store = store
    self.hosts = hosts
    access = Access(options)
    digestReader = DigestReader(store, digests)
    workers = Workers(threads: Self.workerThreads)
    uploads = Uploads(
      store, workers, maxSize: options.maxSize, maxUnfinished: options.maxUnfinished, expire: options.expire,
      counters.uploads
    ) { [health] file in
      health.published(file.path)
      options.received?(file)
    }
  }

  /// Starts background work: expiry, and publishing uploads that were complete when the server was killed.
  func start() {
    let interval = min(.seconds(60), max(.milliseconds(50), options.expire / 4))
    tidying.start(every: interval) { [workers, uploads] in workers.submit { uploads.tidy() } }
    let look = { @Sendable [store, options, health] in
      for line in store.lookAgain() { options.notice?(line) }
      let finding = FolderHealth.Finding(
        problem: store.problem, free: store.free, refusingLimit: store.takeRefusal() ? options.maxTotal : nil,
        published: store.monitoringNames)
      let full = health.note(finding)
      if let full, !options.isReadOnly { options.notice?(full) }
    }
    look()
    watching.start(every: .seconds(1), look)
    workers.submit { [uploads, access] in
      access.prepare()
      uploads.tidy()
      uploads.publishComplete()
    }
  }

  /// Ends the threads after they have finished all submitted work.
  func stop() {
    tidying.stop()
    watching.stop()
    digestReader.finish()
    listers.finish()
    archivers.finish()
    queriers.finish()
    workers.finish()
  }

  /// Runs `work` on a worker while the connection is suspended.
  func onWorker(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan { on(workers, work) }

  /// Like `onWorker`, for a folder page. Throws 503 if too many pages are in progress or their total size is too large.
  func onLister(_ work: @escaping @Sendable () throws(ServerError) -> Reply) throws(ServerError) -> Plan {
    guard let place = pages.take() else { throw Self.tooManyPages }
    return on(listers) { [pageBytes] () throws(ServerError) in
      var reply = try work()
      guard let bytes = pageBytes.take(reply.size) else { throw Self.tooManyPages }
      reply.permits = [place, bytes]
      return .reply(reply)
    }
  }

  /// Like `onWorker`, for an archive, whose files may be many.
  func onArchiver(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan { on(archivers, work) }

  /// Like `onWorker`, for the versions of many files.
  func onQuerier(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan { on(queriers, work) }

  /// Runs `work`, which looks up a name, while the connection is suspended. It does not wait for uploads.
  func besideUploads(_ work: @escaping @Sendable () -> Plan) -> Plan {
    on(listers) { () throws(ServerError) in work() }
  }

  /// Reports a file that was published by a request that is no `Upload`.
  func received(_ file: ReceivedFile) {
    counters.uploads.finished(file)
    health.published(file.path)
    options.received?(file)
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

  /// Adds header fields that every response needs.
  func completed(_ reply: Reply, to request: Request) -> Reply {
    var reply = reply
    if reply.status >= 500 { reply.replace(options.folder.bytes, with: "the served folder") }
    if request.headers["Tus-Resumable"] != nil || request.method == "OPTIONS" {
      reply.headers["Tus-Resumable"] = Tus.version
    }
    CrossOrigin.complete(&reply, to: request, self)
    return reply
  }
}
