import BlobCrypto
import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

extension ConnectionOptions {
  /// The request fields, read from their files now; the error names a missing file.
  func fields(for endpoint: HTTPURL) async throws(UploadError) -> HTTPHeaders {
    let read: Result<HTTPHeaders, UsageError>
    if tokenCommand == nil, passwordCommand == nil {
      read = Result { () throws(UsageError) in try requestHeaders(for: endpoint) }
    } else {
      // A command may wait for the user.
      let printed = await Self.commands.runUntilCancelled { _ in
        Result { () throws(UsageError) in try requestHeaders(for: endpoint) }
      }
      guard let printed else { throw UploadError(.giveUp, .cancelled, "cancelled") }
      read = printed
    }
    do { return try read.get() } catch { throw UploadError(.giveUp, .destination, error.message) }
  }

  private static let commands = BlockingPool("fullbore-secrets", threads: 1)

  /// Reads the request fields again, for a server that does not take them any more; nil: none of them is in a file, or the
  /// output of a command.
  func rereading(for endpoint: HTTPURL) -> (@Sendable () -> HTTPHeaders?)? {
    let mayChange =
      tokenFile != nil || netrcFile != nil || tokenCommand != nil || passwordCommand != nil
      || headers.contains { if case .file = $0 { true } else { false } }
    if !mayChange { return nil }
    // A file that cannot be read now, for example while it is written, changes nothing: the server's refusal is reported.
    return { @Sendable in try? requestHeaders(for: endpoint, again: true) }
  }

  /// `connections`: requests at once, whatever is found; nil: as many as the link gains by.
  func transportOptions(connections: Int?) throws(UploadError) -> SocketTransport.Options {
    var options = SocketTransport.Options()
    if let connections {
      (options.connections, options.adapts) = (connections, false)
    } else if let most = OpenFiles.mostJobs {
      options.connections = min(options.connections, most)
    }
    if let timeout {
      options.noProgress = timeout
      options.connect = min(timeout, options.connect)
      options.finishing = max(timeout, options.finishing)
    }
    if let finishTimeout { options.finishing = finishTimeout }
    options.caFile = certificates?.description
    options.verifiesTLS = !isInsecure
    do {
      options.proxy = try readProxy()
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
    return options
  }

  /// The settings for the journal: where credentials come from, but never their values. A field typed on the command
  /// line is not stored, since it may be secret. Of the credentials of a place, only its name is stored.
  func journaled(
    _ destination: UploadDestination, overwrite: Bool, checksum: Digest.Algorithm? = nil,
    form: FormOptions = FormOptions(), s3: S3Location? = nil, omitsTimes: Bool = false,
    verifies: Bool = false, renames: Bool = false
  ) -> JournalDestination {
    let isFromPlace = placeName != nil
    let files = headers.compactMap { header -> String? in
      if case .file(let path) = header { return path.description }
      return nil
    }
    let proxy: String? =
      switch proxy {
      case .url(let proxy): proxy.description
      case .file(let path): "@\(path)"
      case nil: nil
      }
    var kept = JournalDestination(
      // The query is not stored, because it may be a signature.
      endpoint: destination.endpoint.text, protocolName: destination.uploadProtocol.name,
      tokenFile: isFromPlace ? nil : tokenFile?.description, headerFiles: isFromPlace ? [] : files,
      netrcFile: isFromPlace ? nil : netrcFile?.description,
      caFile: certificates?.description, proxy: proxy, insecure: isInsecure, overwrite: overwrite,
      checksum: checksum?.name, form: destination.traits.recipient != nil ? form.journaled : nil, s3: s3,
      omitsTimes: omitsTimes ? true : nil, verifies: verifies ? true : nil,
      recipient: destination.journaledRecipient, account: destination.journaledAccount)
    kept.placeName = placeName
    kept.renames = renames ? true : nil
    return kept
  }

  private var hasCredentials: Bool { hasCredentialsOfHTTP || !headers.isEmpty }

  /// Whether there are credentials that S3 does not have.
  var hasCredentialsOfHTTP: Bool {
    tokenFile != nil || netrcFile != nil || tokenCommand != nil || passwordCommand != nil
  }

  /// Uses the credentials of `other`, unless there are some already.
  mutating func takeCredentials(of other: ConnectionOptions) {
    if hasCredentials { return }
    (tokenFile, netrcFile, headers) = (other.tokenFile, other.netrcFile, other.headers)
    (tokenCommand, user, passwordCommand) = (other.tokenCommand, other.user, other.passwordCommand)
    (account, placeName) = (other.account, other.placeName)
  }

  /// Without everything that may be a place's and is for one server.
  private var withoutPlace: ConnectionOptions {
    var result = ConnectionOptions()
    (result.retries, result.timeout, result.finishTimeout, result.s3) = (retries, timeout, finishTimeout, s3)
    return result
  }

  /// Options that are not given now are set as they were when the push started, and else as the place has them to which
  /// the push went.
  ///
  /// `places`: nil: those of the user's file.
  func completed(from kept: JournalDestination, _ places: Places? = nil) throws(UploadError) -> ConnectionOptions {
    // The place that the command names may have another one in it, whose uploads have their own credentials.
    if let placeName, let name = kept.placeName, name != placeName {
      return try withoutPlace.completed(from: kept, places)
    }
    var result = self
    if !hasCredentials {
      result.tokenFile = kept.tokenFile.map { BytePath($0) }
      result.netrcFile = kept.netrcFile.map { BytePath($0) }
      result.headers = kept.headerFiles.map { .file(BytePath($0)) }
    }
    let place = result.hasCredentials ? nil : try placeOptions(for: kept, places)
    // The credentials of a place go only over connections as the place has them, or as they are given now.
    if place?.hasCredentials != true {
      result.certificates = certificates ?? kept.caFile.map { BytePath($0) }
      result.proxy = proxy ?? kept.proxy.flatMap(ProxyPlace.init)
      result.isInsecure = isInsecure || kept.insecure
    }
    guard let place else { return result }
    result.takeCredentials(of: place)
    result.certificates = result.certificates ?? place.certificates
    result.proxy = result.proxy ?? place.proxy
    result.isInsecure = result.isInsecure || place.isInsecure
    result.retries = retries ?? place.retries
    result.timeout = timeout ?? place.timeout
    result.finishTimeout = finishTimeout ?? place.finishTimeout
    return result
  }
}

extension ConnectionOptions.ProxyPlace {
  /// Parses the text from the journal.
  fileprivate init?(_ kept: String) {
    if kept.first == "@" {
      self = .file(BytePath(String(kept.dropFirst())))
    } else {
      guard let proxy = Proxy(kept) else { return nil }
      self = .url(proxy)
    }
  }
}

/// Runs `body` as a task that Ctrl-C cancels; a second Ctrl-C ends the program immediately.
func interruptible<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
  let (start, starting) = AsyncStream.makeStream(of: Never.self)
  let task = Task {
    for await _ in start {}
    return await body()
  }
  // The handler is installed before `body` starts, so that `body` can always be cancelled.
  Signals.onInterrupt { _ in task.cancel() }
  starting.finish()
  return await task.value
}

extension ExitStatus {
  /// The status of a command with several destinations: an interruption counts before a destination that cannot be reached
  /// or refuses us, then wrong usage, then a failure of single files.
  static func worst(of statuses: [ExitStatus]) -> ExitStatus {
    [.interrupted, .unreachable, .usage, .failed].first { statuses.contains($0) } ?? .ok
  }

  /// The exit status for the error that ended a run, or else for the results of its files.
  init(_ ended: UploadError?, _ counters: PushCounters) {
    switch ended?.side {
    case .destination where ended?.isWrongDestination == true: self = .usage
    case .cancelled: self = .interrupted
    case .destination: self = .unreachable
    case .source, .file, .journal: self = .failed
    case nil:
      // Skipped files are not at the destination, so a success must not suggest that a card may be emptied.
      let files = counters.files
      let hasFailed = files.failed > 0 || files.skipped > 0
      self = hasFailed || counters.isIncomplete.load(ordering: .relaxed) ? .failed : .ok
    }
  }
}

extension ConnectionOptions {
  /// The transport options for sending files. `limiter`: that of all destinations of a push; nil: this one has its own.
  func transportOptions(
    at pace: PaceOptions, sharing limiter: RateLimiter? = nil
  ) throws(UploadError) -> SocketTransport.Options {
    var options = try transportOptions(connections: pace.jobs)
    options.limiter = limiter ?? pace.limiter
    return options
  }
}
