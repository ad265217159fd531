#if canImport(FoundationNetworking)
  import BlobClient
  import BlobHTTP
  import BlobStreams
  import Blobs
  import Foundation
  import FoundationNetworking

  /// Loads requests whose body is a `BlobInputStream` with `SocketTransport`, each on its own thread and connection.
  /// Foundation on Linux reads the bodies of all sessions of a process on one queue, where one blocked stream delays
  /// all others.
  ///
  /// All methods run on the session's queue, and state is accessed only there.
  class StreamedBodyProtocol: URLProtocol {
    private var upload: Task<Void, Never>?
    private var isOver = false

    override class func canInit(with request: URLRequest) -> Bool {
      request.httpBodyStream is BlobInputStream && HTTPRequest(request) != nil
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Called again when a suspended task resumes.
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

    /// Also called when the task is suspended; suspension does not stop the body.
    override func stopLoading() {
      if task?.state == .suspended { return }
      isOver = true
      upload?.cancel()
      request.httpBodyStream?.close()
    }

    /// Foundation terminates the process if the client is called after `stopLoading`.
    private func tell(_ outcome: Result<HTTPResponse, TransportError>) {
      if isOver { return }
      isOver = true
      do {
        let answer = try outcome.get()
        client?.urlProtocol(self, didReceive: answer.head.response(to: request.url!), cacheStoragePolicy: .notAllowed)
        // The body is delivered in one piece, because a completion handler receives only the last piece.
        if !answer.body.isEmpty { client?.urlProtocol(self, didLoad: Data(answer.body)) }
        client?.urlProtocolDidFinishLoading(self)
      } catch {
        client?.urlProtocol(self, didFailWithError: error.urlError)
      }
    }

    // MARK: The outgoing request

    private var body: BlobSlice? {
      guard let stream = request.httpBodyStream else { return nil }
      // The worker owns the stream from here on, except for `close`, which any thread may call.
      nonisolated(unsafe) let body = stream
      return BlobSlice(StreamSource(body, length: length))
    }

    /// The length that `setBody` has set.
    private var length: Int64? { request.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) } }

    private var options: SocketTransport.Options {
      let own = request.timeoutInterval
      let limit = Duration.seconds(own == 60 ? session?.configuration.timeoutIntervalForRequest ?? own : own)
      // Foundation's environment variable for a file of CA certificates.
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

  /// Loads all requests of a `SessionExchange`, also those without a body: Foundation terminates the process if a
  /// connection breaks within the head of a response.
  final class ExchangeProtocol: StreamedBodyProtocol {
    override class func canInit(with request: URLRequest) -> Bool { HTTPRequest(request) != nil }
  }

  extension URLSessionTask {
    /// A stored property that Foundation does not expose, such as the task's session or the queue on which a
    /// URLProtocol must call its client. nil if this version of Foundation does not have it.
    fileprivate func innards(_ name: String) -> Any? {
      let mirrors = sequence(first: Mirror(reflecting: self)) { $0.superclassMirror }
      guard let found = mirrors.lazy.compactMap({ $0.children.first { $0.label == name } }).first else { return nil }
      // Unwraps an implicitly unwrapped optional.
      let value = Mirror(reflecting: found.value)
      return value.displayStyle == .optional ? value.children.first?.value : found.value
    }
  }

  extension HTTPRequest {
    /// nil if the URL is not HTTP or contains a password.
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
    /// Whether the field frames the body, which only the transport may set.
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
