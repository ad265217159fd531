import BlobClient
import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// A source that was found and can be read.
struct OpenedSource: Sendable {
  enum Content: Sendable {
    /// A file, which each destination opens by itself.
    case file
    /// A file whose length is known only at its end, as in /proc. Each destination opens it by itself.
    case unsized
    /// The source for each destination.
    case sources([any BlobSource], BlobInfo)
  }
  let found: FoundSource
  let content: Content

  /// The source for one destination of the push.
  func at(_ destination: Int) -> OpenedSource {
    var content = content
    if case .sources(let sources, let info) = content { content = .sources([sources[destination]], info) }
    return OpenedSource(found: found.at(destination), content: content)
  }
}

/// Opens found sources that are not files, once for all destinations, and reports those that cannot be opened.
struct SourceOpener: Sendable {
  private let destinations: Int
  private let report: any PushReport
  private let counters: PushCounters
  /// Informed about waits for sources; nil: nothing is.
  private let waits: SourceWaits?
  private let resolver: SourceResolver
  private let questions = SourceProbes()
  private let memory = SharedMemory()
  private let lengthIsNeeded = LengthIsNeeded()

  /// - `connection`: the options for sources at URLs.
  /// - `destinations`: the number of destinations of each source.
  init(
    _ connection: ConnectionOptions, jobs: Int?, destinations: Int = 1, _ report: any PushReport,
    _ counters: PushCounters, _ waits: SourceWaits?
  ) throws(UploadError) {
    (self.destinations, self.report, self.counters, self.waits) = (destinations, report, counters, waits)
    // A separate transport, because sending and reading over the same one could wait for each other's connections.
    let reading = try connection.readingTransport(jobs: jobs)
    resolver =
      SourceResolver.files.addingHTTP(
        over: reading, retries: connection.retries ?? HTTPRangeSource.usualRetries,
        notice: { report.notice($0) }
      ).withDatabases
  }

  /// A destination wants the length of each file before its first byte, so renditions are measured from now on.
  func needLength() { lengthIsNeeded.flag.store(true, ordering: .relaxed) }

  /// The next sources; nil at the end of the walk. A source at a URL is returned when its server has responded, so
  /// sources that were found after it may come before it. An empty array says that only sources at URLs follow, whose servers
  /// have not responded yet.
  func next(of walk: some SourceWalk) async -> [OpenedSource]? {
    // Reading on after a cancellation would skip sources that the walk has passed over.
    while !Task.isCancelled {
      var opened: [OpenedSource] = []
      if let answer = questions.takeAnswer() {
        opened = source(answer).map { [$0] } ?? []
      } else if questions.mayAsk {
        if let found = await walk.next() {
          opened = await open(found)
        } else if questions.end(), !Task.isCancelled {
          return []
        }
      } else if await !questions.wait() {
        return nil
      }
      if !opened.isEmpty { return opened }
    }
    return nil
  }

  /// Without the sources at URLs, which follow with `next`.
  func open(_ found: [FoundSource]) async -> [OpenedSource] {
    var opened: [OpenedSource] = []
    for found in found where !Task.isCancelled {
      switch found.place {
      case .file(let stamp):
        switch stamp.size == 0 ? await isUnsized(found.identity) : .success(false) {
        case .success(let isUnsized):
          opened.append(OpenedSource(found: found, content: isUnsized ? .unsized : .file))
        case .failure(let error): fail(found.identity, error)
        }
      case .standardInput:
        counters.found(length: nil)
        opened.append(share(found, DescriptorSource(0), BlobInfo(length: nil), .never, SourceWaits.standardInput))
      case .url(let url):
        if URLSource.isURL(BytePath(url)) {
          ask(found, at: url)
        } else if let source = await source(found, at: url) {
          opened.append(source)
        }
      case .rendition(let rendition): if let source = await source(found, rendition) { opened.append(source) }
      }
    }
    return opened
  }

  /// A file with size 0 may nevertheless have content, as in /proc; then its length is known only at its end.
  private func isUnsized(_ path: BytePath) async -> Result<Bool, BlobError> {
    let result = await BlockingPool.shared.runUntilCancelled { cancel in
      Result { () throws(BlobError) -> Bool in
        do throws(BlobError) { return try UnsizedFileSource.isNeeded(for: path, cancel) } catch {
          // The file was renamed or deleted meanwhile, which is handled when it is sent.
          if error.code == .notFound { return false }
          throw error
        }
      }
    }
    return result ?? .failure(BlobError(.cancelled, "open \(path): cancelled"))
  }

  /// Asks the server of a URL source for its properties. The response becomes the source.
  private func ask(_ found: FoundSource, at url: String) {
    counters.found(length: nil)
    let host = Self.host(of: url)
    questions.ask(found) { [resolver, waits] cancel throws(BlobError) in
      let source = try resolver.source(for: url)
      let asked: any BlobSource = waits.map { WaitRecordingSource(source: source, host: host, waits: $0) } ?? source
      return (source, try asked.info(cancel))
    }
  }

  private static func host(of url: String) -> String { HTTPURL(url).map { "\($0.host):\($0.port)" } ?? url }

  /// nil: the server has nothing to send, which is reported.
  private func source(_ answer: SourceProbes.Answer) -> OpenedSource? {
    switch answer.result {
    case .success(let (source, info)):
      counters.foundBytes(info.length)
      guard case .url(let url) = answer.found.place else { return nil }
      return share(
        answer.found, source, info,
        rereading(source, info) { [resolver] () throws(BlobError) in try resolver.source(for: url) },
        Self.host(of: url))
    case .failure(let error):
      fail(answer.found.identity, error)
      return nil
    }
  }

  /// A row or a table of a local database.
  private func source(_ found: FoundSource, at url: String) async -> OpenedSource? {
    let asked = await asking.runUntilCancelled { [resolver] cancel in
      Result { () throws(BlobError) in
        let source = try resolver.source(for: url)
        return (source, try source.info(cancel))
      }
    }
    switch asked {
    case nil: return nil
    case .success(let (source, info)):
      counters.found(length: info.length)
      return share(
        found, source, info,
        rereading(source, info) { [resolver] () throws(BlobError) in try resolver.source(for: url) })
    case .failure(let error):
      if error.code != .cancelled {
        counters.notFound()
        report.failed(found.identity, error.message)
      }
      return nil
    }
  }

  private func source(_ found: FoundSource, _ rendition: FoundRendition) async -> OpenedSource? {
    let needsLength = lengthIsNeeded.flag.load(ordering: .relaxed)
    switch await rendition.open(needsLength: needsLength) {
    case .success(let (source, info)):
      return share(
        found, source, info,
        .anywhere { () throws(BlobError) in
          needsLength ? try rendition.source.measured(Cancellation()) : rendition.source
        })
    case .failure(let error):
      fail(rendition.original, error)
      return nil
    }
  }

  /// How a source is read again by a destination that is late.
  private func rereading(
    _ source: any BlobSource, _ info: BlobInfo, _ make: @escaping @Sendable () throws(BlobError) -> any BlobSource
  ) -> SharedPass.Rereading {
    source.access == .random && info.validator != nil
      ? .anywhere { () throws(BlobError) in source } : .fromBegin(source: make)
  }

  /// `host`: what is waited for while the source is read; nil: that is not recorded.
  private func share(
    _ found: FoundSource, _ source: any BlobSource, _ info: BlobInfo, _ rereading: SharedPass.Rereading,
    _ host: String? = nil
  ) -> OpenedSource {
    var sources =
      destinations == 1
      ? [source]
      : SharedPass(source, length: info.length, rereading, destinations: destinations, memory).sources
    if let host, let waits { sources = sources.map { WaitRecordingSource(source: $0, host: host, waits: waits) } }
    return OpenedSource(found: found, content: .sources(sources, info))
  }

  /// Reports a source that was counted as found and did not become an item.
  private func fail(_ path: BytePath, _ error: BlobError) {
    if error.code == .cancelled { return }
    counters.unreadable()
    report.failed(path, error.message)
  }
}

private final class LengthIsNeeded: Sendable {
  let flag = Atomic(false)
}

extension ConnectionOptions {
  /// The transport for reading sources at URLs. A source that cannot be read twice holds a connection from the moment
  /// its properties are requested, and so does each server that has not responded yet. There are connections for all of
  /// these in addition to those of the files under way. The number must not adapt to the link: with fewer connections,
  /// waiting sources could hold all connections that the files under way need.
  fileprivate func readingTransport(jobs: Int?) throws(UploadError) -> SocketTransport {
    var options = try transportOptions(connections: nil)
    options.adapts = false
    options.connections = (jobs ?? options.connections) + 16 + SourceProbes.most
    return SocketTransport(options)
  }
}

private let asking = BlockingPool("ask-database", threads: 4, patience: .seconds(5))
