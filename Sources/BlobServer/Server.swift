import Blobs
import Platform

/// Receives files over HTTP into a folder, and serves them.
///
/// It supports `PUT`, tus 1.0, and `GET` with ranges. A file appears under its name completely or not at all, and
/// replaces a different file only if the client requests it. Unfinished uploads survive when the server is killed.
/// Bodies are never buffered as a whole in memory.
public final class Server: Sendable {
  private enum State { case running, stopping, stopped }
  private let state = Monitor(State.running)
  let service: Service
  private let loops: [EventLoop]
  /// The loop of the address for metrics is the last one, if there is such an address.
  private let listeners: [Listener]
  /// The port that the server listens on, also if the options had port 0.
  public let port: UInt16
  /// For example `http://127.0.0.1:8080/`, or with `https`.
  public let url: String

  /// The URL of the metrics, for example `http://127.0.0.1:9100/metrics`; nil: they have no address of their own.
  public let metricsURL: String?

  /// Damage found in the folder's `.fullbore` when the server started, and what was done about it: one line each.
  public let notices: [String]

  /// The server listens when this returns. Throws if the folder does not exist or another server serves it, if the
  /// address or port is not available, or if the certificate or its key is invalid. Raises the process's limit of open
  /// files towards the hard limit, because every connection needs a file descriptor. Blocks for a short time.
  public convenience init(_ options: ServerOptions) throws(ServerError) { try self.init(options, mostConnections: nil) }

  /// Serves `store`, which the server closes when it stops, or if this throws.
  package convenience init(_ options: ServerOptions, _ store: any UploadStore) throws(ServerError) {
    try self.init(options, mostConnections: nil, store)
  }

  /// `mostConnections`: the maximum number of connections; nil: as many as the limit of open files allows. `given`: nil: the
  /// files are stored in the folder of `options`.
  init(
    _ options: ServerOptions, mostConnections: Int?, _ given: (any UploadStore)? = nil
  ) throws(ServerError) {
    var isServed = false
    defer { if !isServed { given?.close() } }
    let tls: TLSContext? = if let files = options.tls { try TLSContext(files) } else { nil }
    let files = raiseFileLimit()
    let listener = try Listener(options.address, options.port, upTo: options.lastPort)
    let (store, notices): (any UploadStore, [String]) =
      if let given { (given, []) } else { try Self.fileStore(options) }
    let service = Service(options, store, HostRule(listener, options))
    let metrics = try MetricsAddress(options)
    let allowed = try ConnectionLimit.connections(
      within: files - (metrics == nil ? 0 : MetricsAddress.files), workers: Service.workerThreads)
    let most = mostConnections ?? allowed
    var loops: [EventLoop] = []
    for number in 0..<Self.threads {
      let share = (most + number) / Self.threads
      loops.append(try EventLoop(service, listener.socket, tls, most: share, mostLingering: max(1, share / 8)))
    }
    for (number, loop) in loops.enumerated() { loop.other = loops[(number + 1) % loops.count] }
    if let metrics { loops.append(try metrics.loop(service)) }
    self.loops = loops
    listeners = [listener] + [metrics?.listener].compactMap { $0 }
    metricsURL = metrics?.url
    port = listener.port
    url = "\(options.tls == nil ? "http" : "https")://\(listener.host):\(listener.port)/"
    self.service = service
    self.notices = notices
    isServed = true
    service.start()
    for loop in loops { loop.start() }
  }

  private static func fileStore(_ options: ServerOptions) throws(ServerError) -> (any UploadStore, [String]) {
    let store = try FileStore(
      options.folder, expire: options.expire, maxTotal: options.maxTotal, readOnly: options.isReadOnly,
      conceals: options.reading == .nothing)
    return (store, store.notices)
  }

  /// Stops accepting connections, waits up to `grace` for current requests, and closes the rest; received bytes of
  /// resumable uploads are kept. Blocks until everything has stopped. May be called repeatedly and from any thread.
  public func stop(grace: Duration) { _ = stop(grace: grace, listsUnfinished: false) }

  /// Like `stop(grace:)`. Returns the uploads that are not finished, sorted by their paths, 10,000 of those that are kept and
  /// 10,000 of the others at most; empty if the server was stopped before.
  public func stop(grace: Duration, listsUnfinished: Bool) -> [UnfinishedUpload] {
    let isFirst = state.update { state in
      if state != .running { return false }
      state = .stopping
      return true
    }
    guard isFirst else {
      state.wait { $0 == .stopped ? () : nil }
      return []
    }
    for loop in loops { loop.post(.stopAccepting) }
    // New connections are refused from now on, although the descriptors stay open.
    for listener in listeners { shutdown(listener.socket.number, Socket.shutBoth) }
    let deadline = ContinuousClock.now + grace
    while service.counters.requests.load(ordering: .sequentiallyConsistent) > 0, ContinuousClock.now < deadline {
      usleep(5_000)
    }
    service.store.interrupt()
    let lost = service.counters.uploads.lost
    if listsUnfinished { lost.begin() }
    for loop in loops { loop.post(.cut) }
    for loop in loops { loop.join() }
    service.stop()
    let kept = listsUnfinished ? service.store.unfinishedUploads(atMost: 10_000) : []
    service.store.close()
    state.update { $0 = .stopped }
    return (kept + lost.all).sorted { $0.path < $1.path }
  }

  /// The paths of files, and with a slash at the end those of folders as archives, whose bytes were being sent to somebody when
  /// `stop` cut the connections; 1,000 at most. Empty before.
  public var cutDownloads: [BytePath] { service.counters.cutDownloads.all }

  deinit { stop(grace: .zero) }

  /// What the server does at this moment, and what it has done since it was started. Cheap; any thread may read it.
  public var activity: Activity {
    Activity(
      requests: service.counters.requests.load(ordering: .relaxed),
      bytesReceived: service.counters.bytesReceived.load(),
      filesSent: Int(service.counters.filesSent.load()),
      isVisited: service.counters.visiting.load(ordering: .relaxed) > 0,
      visits: Int(service.counters.visits.load()), unfinished: service.store.continued)
  }

  /// The clients that send files at this moment, with these files. Reading this property takes a lock for a short time; any
  /// thread may read it, a few times a second.
  public var senders: [ActiveSender] { service.counters.uploads.active.senders }

  /// A snapshot of what the server does.
  public struct Activity: Sendable {
    /// Requests that were received, at least in part, and not answered yet.
    public let requests: Int
    /// Bytes that clients have sent, including the heads of their requests.
    public let bytesReceived: Int64
    /// Files, or ranges of files, whose bytes were sent to clients: responses with status 200 or 206 to GET.
    public let filesSent: Int
    /// Whether a request that counts as a visit is in progress.
    public let isVisited: Bool
    /// Requests that were answered with success and count as visits: all that had the token or a ticket, if one is
    /// needed, except HEAD, and those for the server's health and metrics.
    public let visits: Int
    /// Uploads that are saved and not finished. Uploads of earlier runs count once a client has sent bytes for them.
    public let unfinished: Int
  }

  /// The number of connections, including those about to be served.
  var connectionCount: Int { loops.prefix(Self.threads).reduce(0) { $0 + $1.connectionCount } }

  private static let threads = 2
}
