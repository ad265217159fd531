import BlobHTTP
import Blobs
import Synchronization

/// Answers as another transport does, to a closure.
final class Starter: StartingTransport {
  struct Counts: Equatable { var (started, sent) = (0, 0) }
  private let transport: any Transport
  private let state = Mutex(Counts())

  init(_ transport: any Transport) { self.transport = transport }

  var counts: Counts { state.withLock { $0 } }

  func exchange(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) -> (any StartableExchange)? {
    StartedExchange { [self] () async -> Result<HTTPResponse, TransportError> in
      state.withLock { $0.started += 1 }
      var request = request
      do throws(BlobError) { try on.prepare?(&request, Cancellation()) } catch {
        return .failure(TransportError(.source, error.message, cause: error))
      }
      do throws(TransportError) { return .success(try await transport.send(request, body: body, on)) } catch {
        return .failure(error)
      }
    }
  }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    state.withLock { $0.sent += 1 }
    return try await transport.send(request, body: body, on)
  }
}

private final class StartedExchange: StartableExchange {
  private let body: @Sendable () async -> Result<HTTPResponse, TransportError>
  private let task = Mutex<(task: Task<Void, Never>?, isCancelled: Bool)>((nil, false))

  init(_ body: @escaping @Sendable () async -> Result<HTTPResponse, TransportError>) { self.body = body }

  func start(_ answer: @escaping @Sendable (Result<HTTPResponse, TransportError>) -> Void) {
    task.withLock { task in
      task.task = Task { [body] in answer(await body()) }  // ends with its answer
      if task.isCancelled { task.task?.cancel() }
    }
  }

  func cancel() {
    task.withLock { task in
      task.isCancelled = true
      task.task?.cancel()
    }
  }
}
