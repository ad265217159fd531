#if canImport(FoundationNetworking)
  import BlobClient
  import BlobHTTP
  import BlobStreams
  import Blobs
  import Foundation
  import FoundationNetworking

  /// Loads requests whose body is a `BlobInputStream` over `SocketTransport`: on a thread and a connection of each one's
  /// own. Foundation on Linux reads the bodies of all sessions of a process on one queue, and one that waits holds them all.
  ///
  /// The session's queue calls everything here, and nothing else is touched but on it.
  class StreamedBodyProtocol: URLProtocol {
    private var upload: Task<Void, Never>?
    private var isOver = false

    override class func canInit(with request: URLRequest) -> Bool {
      request.httpBodyStream is BlobInputStream && HTTPRequest(request) != nil
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Called again when a task goes on that was suspended.
    override func startLoading() {
      guard upload == nil, !isOver, let task, let outgoing = HTTPRequest(request, session?.configuration) else {
        return
      }
      let queue = task.innards("workQueue") as? DispatchQueue ?? DispatchQueue(label: "fullbore-urlprotocol")
      let (transport, body, exchange) = (SocketTransport(options), body, exchange(of: task))
      nonisolated(unsafe) let loading = self
      upload = Task {
        let outcome: Result<HTTPResponse, TransportError>
        do throws(TransportError) {
          outcome = .success(try await transport.send(outgoing, body: body, exchange))
        } catch {
          outcome = .failure(error)
        }
        queue.async { loading.tell(outcome) }
      }
    }

    /// Called for a suspension too, which does not hold the body back.
    override func stopLoading() {
      if task?.state == .suspended { return }
      isOver = true
      upload?.cancel()
      request.httpBodyStream?.close()
    }

    /// The client must hear nothing after `stopLoading`, or it ends the process.
    private func tell(_ outcome: Result<HTTPResponse, TransportError>) {
      if isOver { return }
      isOver = true
      do {
        let answer = try outcome.get()
        client?.urlProtocol(self, didReceive: answer.head.response(to: request.url!), cacheStoragePolicy: .notAllowed)
        // In one piece: a completion handler is given the last.
        if !answer.body.isEmpty { client?.urlProtocol(self, didLoad: Data(answer.body)) }
        client?.urlProtocolDidFinishLoading(self)
      } catch {
        client?.urlProtocol(self, didFailWithError: error.urlError)
      }
    }

    // MARK: What is sent, and how

    private var body: BlobSlice? {
      guard let stream = request.httpBodyStream else { return nil }
      nonisolated(unsafe) let body = stream  // the worker's from here on, but for `close`, which any thread may call
      return BlobSlice(StreamSource(body, length: length))
    }

    /// As `setBody` has announced it.
    private var length: Int64? { request.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) } }

    private var options: SocketTransport.Options {
      let own = request.timeoutInterval
      let limit = Duration.seconds(own == 60 ? session?.configuration.timeoutIntervalForRequest ?? own : own)
      // Foundation's own name for a file of certificates.
      let caFile = ProcessInfo.processInfo.environment["URLSessionCertificateAuthorityInfoFile"]
      return SocketTransport.Options(connections: 1, caFile: caFile, noProgress: limit, finishing: limit)
    }

    private func exchange(of task: URLSessionTask) -> Exchange {
      if let own = task.delegate as? SessionExchange { return own.direct }
      guard let session, let delegate = task.delegate else { return Exchange() }
      let expected = length ?? NSURLSessionTransferSizeUnknown
      let total = Monitor(Int64(0))
      return Exchange(sent: { count in
        let sent = total.update { total in
          total += Int64(count)
          return total
        }
        session.delegateQueue.addOperation {
          delegate.urlSession(
            session, task: task, didSendBodyData: Int64(count), totalBytesSent: sent, totalBytesExpectedToSend: expected
          )
        }
      })
    }

    private var session: URLSession? { task?.innards("session") as? URLSession }
  }

  /// Every request of a `SessionExchange`, also without a body: Foundation would end the process where a connection
  /// breaks in the head of an answer.
  final class ExchangeProtocol: StreamedBodyProtocol {
    override class func canInit(with request: URLRequest) -> Bool { HTTPRequest(request) != nil }
  }

  extension URLSessionTask {
    /// A stored property that Foundation does not show: whose the task is, and the queue on which a URLProtocol must call
    /// its client. nil: not in this version of Foundation.
    fileprivate func innards(_ name: String) -> Any? {
      let mirrors = sequence(first: Mirror(reflecting: self)) { $0.superclassMirror }
      guard let found = mirrors.lazy.compactMap({ $0.children.first { $0.label == name } }).first else { return nil }
      // Of an implicitly unwrapped one, what it holds.
      let value = Mirror(reflecting: found.value)
      return value.displayStyle == .optional ? value.children.first?.value : found.value
    }
  }

  extension HTTPRequest {
    /// nil: not for HTTP, or with a password in the URL.
    init?(_ request: URLRequest, _ configuration: URLSessionConfiguration? = nil) {
      guard let url = request.url.flatMap({ HTTPURL($0.absoluteString) }) else { return nil }
      self.init(request.httpMethod ?? "GET", url)
      for (name, value) in request.allHTTPHeaderFields ?? [:] where !name.isTransports { headers.add(name, value) }
      for (name, value) in configuration?.httpAdditionalHeaders ?? [:] where headers["\(name)"] == nil {
        if !"\(name)".isTransports { headers.add("\(name)", "\(value)") }
      }
    }
  }

  extension String {
    /// The field says how the body is framed, which the transport sees to.
    fileprivate var isTransports: Bool {
      ["Content-Length", "Transfer-Encoding", "Expect"].contains { $0.isSameField(self) }
    }
  }

  extension HTTPHead {
    fileprivate func response(to url: URL) -> HTTPURLResponse {
      let fields = Dictionary(headers.fields.map { ($0.name, $0.value) }) { "\($0), \($1)" }
      return HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)!
    }
  }
#endif
