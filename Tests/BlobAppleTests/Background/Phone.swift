import BlobClient
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobApple

/// What survives the termination of an app: the disk and the daemon.
final class Phone: Sendable {
  let daemon: Daemon
  let scratch: ScratchFolder
  private let endpoint: HTTPURL
  private let uploadProtocol: any UploadProtocol
  private let credentials: Credentials
  let settings: BackgroundSettings
  /// Sends the requests of the app itself.
  let direct: any Transport
  /// The server lives as long as its phone.
  private let server: ServedFolder?
  private let launches = Mutex<UInt64>(0)
  private let largest = Mutex<Int64>(0)

  struct Credentials {
    var headers: HTTPHeaders = [:]
    var account: String?
    var rereading: (@Sendable () -> HTTPHeaders?)?
  }

  init(
    _ endpoint: HTTPURL, _ uploadProtocol: any UploadProtocol, spoolBytes: Int64 = 64 << 10, daemon: Daemon = Daemon(),
    direct: any Transport = SocketTransport(), credentials: Credentials = Credentials(), scratch: ScratchFolder? = nil,
    server: ServedFolder? = nil, _ change: (inout BackgroundSettings) -> Void = { _ in }
  ) throws {
    self.daemon = daemon
    self.direct = direct
    self.scratch = try scratch ?? ScratchFolder()
    self.endpoint = endpoint
    self.uploadProtocol = uploadProtocol
    self.credentials = credentials
    self.server = server
    var settings = BackgroundSettings(spool: self.scratch.path.appending("spool"), spoolBytes: spoolBytes)
    settings.retry = RetryPolicy(retries: 6, first: .milliseconds(2), longest: .milliseconds(20))
    settings.settling = .milliseconds(20)
    change(&settings)
    self.settings = settings
  }

  /// A phone whose app is signed in at the server; nil: the app has no accounts.
  static func of(
    _ account: String?, _ server: ServedFolder, _ daemon: Daemon = Daemon(), _ scratch: ScratchFolder? = nil
  ) throws -> Phone {
    let headers: HTTPHeaders = ["Authorization": "Bearer \(account ?? "")"]
    return try Phone(
      server.endpoint, Tus(), daemon: daemon, credentials: Credentials(headers: headers, account: account),
      scratch: scratch)
  }

  /// A server, and a phone that runs an app, with a system that sends no task before `isHeld` of its daemon is false.
  static func holding(
    _ uploadProtocol: any UploadProtocol, spoolBytes: Int64 = 64 << 10,
    daemon: Daemon = Daemon(isHeld: true),
    direct: any Transport = SocketTransport(), _ change: (inout BackgroundSettings) -> Void = { _ in }
  ) async throws -> (ServedFolder, Phone, App) {
    let server = try ServedFolder()
    let phone = try Phone(
      server.endpoint, uploadProtocol, spoolBytes: spoolBytes, daemon: daemon,
      direct: direct, server: server, change)
    return (server, phone, try await phone.launch())
  }

  /// A new value, since a killed process does not leave what it knew of the server.
  var destination: UploadDestination {
    UploadDestination(
      endpoint: endpoint, uploadProtocol: uploadProtocol, limits: PartLimits(firstPart: 4 << 20),
      headers: credentials.headers, account: credentials.account, rereading: credentials.rereading)
  }

  var spoolBytes: Int64 { names.reduce(0) { $0 + scratch.size(of: BytePath("spool").appending($1)) } }
  var names: [BytePath] { scratch.names(in: "spool") }
  /// The most bytes that were seen in the spool.
  var largestSpool: Int64 { largest.withLock { $0 } }

  func look() {
    let bytes = spoolBytes
    largest.withLock { $0 = max($0, bytes) }
  }

  /// Starts the app. It is killed at its step `killedAt`; nil: it lives. `sources` by their identities.
  func launch(killedAt: Int? = nil, _ sources: [BytePath: any BlobSource] = [:]) async throws -> App {
    let number = launches.withLock { count in
      count += 1
      return count
    }
    // A process with this pid that was started at another time: it has ended.
    let mark = ProcessIdentity(pid: getpid(), boot: ProcessIdentity.current.boot, start: number)
    return try await App(self, as: mark, killedAt: killedAt, sources)
  }
}

/// One process of the app.
final class App: Sendable {
  let uploader: BackgroundUploader
  let journal: Journal
  let life: Life

  init(_ phone: Phone, as mark: ProcessIdentity, killedAt: Int?, _ sources: [BytePath: any BlobSource]) async throws {
    journal = try await Journal(at: phone.scratch.path.appending("journal.sqlite"), as: mark)
    let life = Life(phone, killedAt: killedAt)
    self.life = life
    var settings = phone.settings
    settings.write = { [write = settings.write] descriptor, bytes in
      life.blockingStep()
      return write(descriptor, bytes)
    }
    uploader = try BackgroundUploader(
      "test", phone.destination, journal: journal, tasks: LivingTasks(phone.daemon, life),
      direct: LivingTransport(phone.direct, life), settings: settings
    ) { sources[$0].map { LivingSource($0, life) } }
  }

  func add(_ source: any BlobSource, as name: BytePath) async throws {
    try await uploader.add(LivingSource(source, life), as: name)
  }

  /// The last state of the upload; nil: the app was killed before.
  func end(of name: BytePath) async -> BackgroundUpload.State? {
    await withTaskGroup(of: BackgroundUpload.State?.self) { group in
      let events = uploader.events()
      group.addTask {
        for await upload in events where upload.name == name {
          switch upload.state {
          case .finished, .failed, .cancelled: return upload.state
          case .uploading, .waiting: break
          }
        }
        return nil
      }
      group.addTask { [life] in
        while !life.isOver, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
        return nil
      }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
  }
}

/// Counts the steps of a process, and stops it at one of them for good, as a SIGKILL does.
final class Life: Sendable {
  private let state: Mutex<(steps: Int, isOver: Bool)>
  private let killedAt: Int?
  private let phone: Phone
  private let turn = Mutex(())
  private static let forever = Monitor(())

  init(_ phone: Phone, killedAt: Int?) {
    self.phone = phone
    self.killedAt = killedAt
    state = Mutex((0, false))
  }

  var isOver: Bool { state.withLock { $0.isOver } }

  /// Returns false if the process is dead.
  func step() -> Bool {
    phone.look()
    let (isOver, isNow) = state.withLock { state in
      state.steps += 1
      let isNow = !state.isOver && state.steps == killedAt
      if isNow { state.isOver = true }
      return (state.isOver, isNow)
    }
    if isNow { phone.daemon.disconnect() }
    return !isOver
  }

  /// The start of a task has returned before its end is told: nothing of a killed process runs on meanwhile.
  func inTurn<Result>(_ body: () -> Result) -> Result { turn.withLock { _ in body() } }

  func kill() {
    state.withLock { $0.isOver = true }
    phone.daemon.disconnect()
  }

  func blockingStep() {
    if !step() { Self.forever.wait { _ -> Void? in nil } }
  }

  func asyncStep() async {
    if !step() { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
  }
}

private final class LivingTasks: BackgroundTasks {
  private let daemon: Daemon
  private let life: Life

  init(_ daemon: Daemon, _ life: Life) {
    self.daemon = daemon
    self.life = life
  }

  func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] {
    await life.asyncStep()
    return daemon.connect(LivingReceiver(receiver, life))
  }
  func start(_ task: BackgroundTask) {
    life.inTurn {
      guard life.step() else { return }
      daemon.start(task)
      _ = life.step()
    }
  }
  func resume(_ data: [UInt8], _ task: BackgroundTask) { if life.step() { daemon.resume(data, task) } }
  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) {
    if !life.isOver { daemon.cancel(label, done) }
  }
}

private final class LivingReceiver: BackgroundTaskReceiver {
  private let receiver: any BackgroundTaskReceiver
  private let life: Life

  init(_ receiver: any BackgroundTaskReceiver, _ life: Life) {
    self.receiver = receiver
    self.life = life
  }

  func sent(_ label: String, total: Int64) { if !life.isOver { receiver.sent(label, total: total) } }
  func ended(_ label: String, _ end: BackgroundTaskEnd) {
    if life.inTurn({ life.step() }) { receiver.ended(label, end) }
  }
  func deliveredAll() { if !life.isOver { receiver.deliveredAll() } }
}

private struct LivingTransport: Transport {
  let transport: any Transport
  let life: Life

  init(_ transport: any Transport, _ life: Life) {
    self.transport = transport
    self.life = life
  }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    await life.asyncStep()
    let response: Result<HTTPResponse, TransportError>
    do { response = .success(try await transport.send(request, body: body, on)) } catch { response = .failure(error) }
    await life.asyncStep()
    return try response.get()
  }
}

private struct LivingSource: BlobSource {
  let source: any BlobSource
  let life: Life

  init(_ source: any BlobSource, _ life: Life) {
    self.source = source
    self.life = life
  }

  var access: BlobAccess { source.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    life.blockingStep()
    return try source.open(at: offset, cancel)
  }
}

extension ServedFolder {
  /// Whether the file has the bytes of the source, and no others.
  func has(_ name: BytePath, _ source: PatternSource) -> Bool {
    contents(of: name) == source.bytes(count: Int(source.length))
  }
}
