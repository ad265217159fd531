#if canImport(Darwin)
  import BlobHTTP
  import BlobURLSession
  import Blobs
  import Foundation
  import Synchronization

  /// Background tasks of a `URLSession`: upload tasks for requests with a body, download tasks for those without.
  final class URLSessionTasks: NSObject, BackgroundTasks {
    private struct State {
      var session: URLSession?
      var receiver: (any BackgroundTaskReceiver)?
      /// The beginning of each response's content, by the number of its task.
      var contents: [Int: [UInt8]] = [:]
      /// The tasks of which the end was not told yet.
      var labels: Set<String> = []
    }
    private let state = Mutex(State())
    private let configuration: URLSessionConfiguration

    /// Bytes of a response's content that are kept.
    private static let mostContent = 64 << 10

    /// Holds the bodies.
    private let spool: BytePath

    init(_ identifier: String, spool: BytePath, _ configure: (URLSessionConfiguration) -> Void) {
      self.spool = spool
      configuration = .background(withIdentifier: identifier)
      configuration.sessionSendsLaunchEvents = true
      configure(configuration)
      // Credentials are sent in a header field, to the destination only.
      configuration.urlCache = nil
      configuration.httpCookieStorage = nil
      configuration.urlCredentialStorage = nil
    }

    func connect(_ receiver: any BackgroundTaskReceiver) async -> [String] {
      state.withLock { $0.receiver = receiver }
      prepareSpool()
      // From here on the system delivers the events of tasks that have ended.
      var labels: [String] = []
      for task in await session.allTasks {
        // Without its piece a task that was not resumed yet would send an empty body.
        guard let label = task.taskDescription, task.state != .suspended || hasPiece(label) else {
          task.cancel()
          continue
        }
        labels.append(label)
        // The app was killed before it had resumed this task, which would wait forever.
        if task.state == .suspended { task.resume() }
      }
      state.withLock { [labels] in $0.labels.formUnion(labels) }
      return labels
    }

    private func prepareSpool() {
      var (folder, values) = (URL(fileURLWithPath: spool.description), URLResourceValues())
      values.isExcludedFromBackup = true
      // Otherwise backups take longer, and nothing else is different.
      try? folder.setResourceValues(values)
      #if os(iOS)
        // Pieces are read while the device is locked, whatever protection the app has chosen for its other files. If this
        // fails, a piece that cannot be read is found before it is given to the system.
        try? FileManager.default.setAttributes(
          [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: spool.description)
      #endif
    }

    private func hasPiece(_ text: String) -> Bool {
      guard let label = TaskLabel(text), let length = label.length else { return TaskLabel(text) != nil }
      // A file whose status cannot be read cannot be sent either.
      return (try? FileSource(PieceSpool.path(of: label, in: spool)).info(Cancellation()))?.length == length
    }

    func start(_ task: BackgroundTask) {
      guard var request = URLRequest(task.request) else {
        let request = task.request
        let error = TransportError(.badRequest, "\(request.method) \(request.url): not a URL to Foundation")
        return receiver?.ended(task.label, .failed(error, resumeData: nil)) ?? ()
      }
      request.httpShouldHandleCookies = false
      // The system sets the length of a file.
      request.setValue(nil, forHTTPHeaderField: "Content-Length")
      guard let file = task.body else { return begin(session.downloadTask(with: request), task) }
      begin(session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file.description)), task)
    }

    func resume(_ data: [UInt8], _ task: BackgroundTask) {
      begin(session.uploadTask(withResumeData: Data(data)), task)
    }

    func cancel(_ label: String, _ done: @escaping @Sendable () -> Void) {
      session.getAllTasks { tasks in
        for task in tasks where task.taskDescription == label { task.cancel() }
        done()
      }
    }

    /// The session, which is made again if the system has invalidated it.
    private var session: URLSession {
      state.withLock { state in
        if let session = state.session { return session }
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        state.session = session
        return session
      }
    }
    private var receiver: (any BackgroundTaskReceiver)? { state.withLock { $0.receiver } }

    private func begin(_ created: URLSessionTask, _ task: BackgroundTask) {
      state.withLock { _ = $0.labels.insert(task.label) }
      created.taskDescription = task.label
      created.countOfBytesClientExpectsToSend = task.length
      if task.delay > .zero { created.earliestBeginDate = Date(timeIntervalSinceNow: task.delay / .seconds(1)) }
      created.resume()
    }

    private func keep(_ content: some Sequence<UInt8>, of task: URLSessionTask) {
      state.withLock { state in
        let room = Self.mostContent - (state.contents[task.taskIdentifier]?.count ?? 0)
        state.contents[task.taskIdentifier, default: []] += content.prefix(max(0, room))
      }
    }
  }

  extension URLSessionTasks: URLSessionDataDelegate, URLSessionDownloadDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData sent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      if let label = task.taskDescription { receiver?.sent(label, total: totalBytesSent) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      keep(data, of: dataTask)
    }

    /// The file exists during this call only.
    func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
      guard let reader = try? FileSource(BytePath(location.path)).open(at: 0, Cancellation()) else { return }
      var content = [UInt8](repeating: 0, count: Self.mostContent)
      // The content only explains an error; one that cannot be read is left out.
      let count = content.withUnsafeMutableBytes { (try? reader.read(into: $0)) ?? 0 }
      keep(content.prefix(count), of: downloadTask)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      let content = state.withLock { state in
        if let label = task.taskDescription { state.labels.remove(label) }
        return state.contents.removeValue(forKey: task.taskIdentifier)
      }
      guard let label = task.taskDescription else { return }
      receiver?.ended(label, Self.end(of: task, content ?? [], error))
    }

    /// No task of the session sends anything any more, and no end of one is told. The next request makes another session.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
      let labels = state.withLock { state in
        state.session = nil
        state.contents = [:]
        defer { state.labels = [] }
        return state.labels
      }
      let reason = error.map { ": \($0.localizedDescription)" } ?? ""
      let error = TransportError(.broken, "the system has ended the background session\(reason)")
      for label in labels { receiver?.ended(label, .failed(error, resumeData: nil)) }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { receiver?.deliveredAll() }

    private static func end(
      of task: URLSessionTask, _ content: [UInt8], _ error: (any Error)?
    ) -> BackgroundTaskEnd {
      let asked = SentRequest(
        task.originalRequest?.httpMethod, task.originalRequest?.url?.absoluteString)
      let name = "\(asked)"
      if let error {
        let data = (error as NSError).userInfo[NSURLSessionUploadTaskResumeData] as? Data
        return .failed(TransportError(error, name), resumeData: data.map { Array($0) })
      }
      guard let response = task.response as? HTTPURLResponse else {
        return .failed(TransportError(.badResponse, "\(name): no response of HTTP"), resumeData: nil)
      }
      let answered = SentRequest(task.currentRequest?.httpMethod, response.url?.absoluteString)
      let head = HTTPHead(response)
      let mayResume = task.taskDescription.flatMap { TaskLabel($0) }?.kind == .create
      if let error = asked.problem(answeredAs: answered, head, mayResume: mayResume) {
        return .failed(error, resumeData: nil)
      }
      // The system tells what a resumed task sends, not the length of the whole body. -1: it does not know.
      let unsent = task.countOfBytesExpectedToSend - task.countOfBytesSent
      return .response(HTTPResponse(head: head, body: content), unsent: max(0, unsent))
    }
  }
#endif
