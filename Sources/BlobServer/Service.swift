import BlobHTTP

/// The state shared by all requests of a server.
final class Service: Sendable {
  let options: ServerOptions
  let store: any UploadStore
  let uploads: Uploads
  private let threads: ServiceThreads
  let digestReader: DigestReader
  let folders = FolderPages()
  let archives = ArchiveResources()
  let queries = QueryResources()
  /// Limits what is kept of all forms until their responses have been sent, in bytes.
  let formBytes = Allowance(64 << 20)
  let upkeep = Upkeep()
  static let workerThreads = 8
  let counters = Counters()
  let access: Access

  init(_ options: ServerOptions, _ store: any UploadStore, _ hosts: HostRule) {
    self.options = options
    self.store = store
    access = Access(options, hosts)
    digestReader = DigestReader(store)
    threads = ServiceThreads(waitsForNetwork: store.abilities.waitsForNetwork)
    uploads = Uploads(
      store, threads.workers, maxSize: options.maxSize, maxUnfinished: options.maxUnfinished, expire: options.expire,
      counters.uploads
    ) { [health = upkeep.health] file in
      health.published(file.path)
      options.received?(file)
    }
  }

  var workers: Workers { threads.workers }
  var relays: Workers? { threads.relays }

  /// Starts background work: expiry, and publishing uploads that were complete when the server was killed.
  func start() {
    // No client may see a part of a group.
    uploads.groups.resume(in: uploads)
    upkeep.start(self)
    workers.submit { [uploads, access] in
      access.prepare()
      uploads.tidy()
      uploads.publishComplete()
    }
  }

  /// Ends the threads after they have finished all submitted work.
  func stop() {
    upkeep.stop()
    digestReader.finish()
    folders.finish()
    archives.threads.finish()
    relays?.finish()
    queries.threads.finish()
    workers.finish()
    uploads.groups.finish()
  }

  /// Passes on the plan of a route that runs on a worker. What the plan does next may wait for the network, too.
  func follow(_ plan: Plan, _ decided: @escaping @Sendable (Plan) -> Void) {
    guard let relays else { return decided(plan) }
    switch plan {
    case .reply: decided(plan)
    case .later(let start): start { [self] next in follow(next, decided) }
    case .receive(let receiver):
      let share = threads.relayMemory.take()
      decided(.receive(RelayedReceiver(receiver, relays, share) { [self] next, decided in follow(next, decided) }))
    }
  }

  /// Runs `work` on a worker while the connection is suspended.
  func onWorker(_ work: @escaping @Sendable () throws(ServerError) -> Plan) -> Plan { workers.plan(work) }

  /// Reports a file that was published by a request that is no `Upload`.
  func received(_ file: ReceivedFile) {
    counters.uploads.finished(file)
    upkeep.health.published(file.path)
    uploads.groups.noteTaken(file.target, in: uploads)
    options.received?(file)
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

/// The threads of a service for work that blocks.
struct ServiceThreads: Sendable {
  let workers: Workers
  /// Routes and receivers of bodies wait on these threads for a store in the network; nil: the store is on this computer.
  let relays: Workers?
  /// For the bytes of bodies that wait for `relays`.
  let relayMemory = MemoryShares(total: 4 << 20, within: ServiceThreads.leastRelayed...128 << 10)
  static let leastRelayed = 16 << 10

  init(waitsForNetwork: Bool) {
    workers = Workers(threads: waitsForNetwork ? 8 * Service.workerThreads : Service.workerThreads)
    relays = waitsForNetwork ? Workers(threads: 512) : nil
  }
}
