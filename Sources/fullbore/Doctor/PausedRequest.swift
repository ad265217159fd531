import BlobClient
import BlobHTTP
import Blobs
import Synchronization

/// Sends a request whose body pauses after its first bytes, and tells when the response came.
struct PausedRequest: Sendable {
  var request: HTTPRequest
  /// Bytes of the whole body, which are zeros.
  var length: Int64
  /// Bytes before the pause.
  var first: Int64
  var pause: Duration
  /// When the exchange is given up.
  var limit: Duration

  /// Bodies below this length are sent at once, with the head.
  static let shortest: Int64 = 64 << 10

  enum End: Sendable {
    case answered(HTTPResponse)
    case failed(TransportError)
    /// `limit` has passed without a response.
    case unanswered
  }

  struct Outcome: Sendable {
    var end: End
    /// Bytes that were handed to the connection.
    var sent: Int64
    /// Interim responses that came before the bytes after the pause were sent.
    var interim: [HTTPHead]

    var response: HTTPResponse? {
      if case .answered(let response) = end { return response }
      return nil
    }
  }

  /// `options`: without a limiter.
  func send(_ options: SocketTransport.Options) async -> Outcome {
    var options = options
    options.limiter = RateLimiter(pausingAfter: first, for: pause)
    let record = Record()
    let exchange = Exchange(
      sent: { count in record.state.withLock { $0.sent += Int64(count) } },
      interim: { [first] head in
        record.state.withLock { if $0.sent <= first, $0.interim.count < 100 { $0.interim.append(head) } }
      })
    let transport = SocketTransport(options)
    let body = BlobSlice(ZeroSource(length: length), length: length)
    let task = Task { () async -> Result<HTTPResponse, TransportError> in
      do throws(TransportError) {
        return .success(try await transport.send(request, body: body, exchange))
      } catch {
        return .failure(error)
      }
    }
    let timer = Task {
      // A cancelled timer has nothing left to do.
      guard (try? await Task.sleep(for: limit)) != nil else { return }
      task.cancel()
    }
    defer { timer.cancel() }
    let result = await withTaskCancellationHandler {
      await task.value
    } onCancel: {
      task.cancel()
    }
    let end: End =
      switch result {
      case .success(let response): .answered(response)
      case .failure(let error) where error.code == .cancelled: .unanswered
      case .failure(let error): .failed(error)
      }
    let (sent, interim) = record.state.withLock { ($0.sent, $0.interim) }
    return Outcome(end: end, sent: sent, interim: interim)
  }
}

extension PausedRequest {
  /// The reports of an exchange, which come on a thread of the transport.
  private final class Record: Sendable {
    let state = Mutex((sent: Int64(0), interim: [HTTPHead]()))
  }
}

/// Zeros of a fixed length.
struct ZeroSource: BlobSource {
  let length: Int64
  var access: BlobAccess { .random }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: length) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    guard 0...length ~= offset else { throw BlobError(.outOfRange, "open at byte \(offset): there are \(length)") }
    return ZeroReader(info: BlobInfo(length: length), left: length - offset)
  }
}

private final class ZeroReader: BlobReader {
  let info: BlobInfo
  private var left: Int64

  init(info: BlobInfo, left: Int64) { (self.info, self.left) = (info, left) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = min(buffer.count, Int(clamping: left))
    for index in 0..<count { buffer[index] = 0 }
    left -= Int64(count)
    return count
  }

  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) {}
}
