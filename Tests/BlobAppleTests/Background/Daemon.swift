import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// A stand-in for the system's daemon: it outlives the uploaders that connect to it, sends files with real HTTP, and
/// keeps events while nobody is connected.
final class Daemon: Sendable {
  enum Fault: Sendable {
    /// The task ends without a response, after the server got this many bytes of the body.
    case breaksAfter(Int64)
    /// A creation breaks when the server has this many bytes and has told the URL of the upload, so that the system can
    /// resume it.
    case breaksResumably(Int64)
    /// The task ends with this response; nothing is sent.
    case answers(Int)
    case answersWith(Int, HTTPHeaders)
  }
  struct Started: Sendable {
    var task: BackgroundTask
    var isResumed: Bool
  }
  private struct State {
    var receiver: (any BackgroundTaskReceiver)?
    var running: [String: Task<Void, Never>] = [:]
    var undelivered: [(label: String, end: BackgroundTaskEnd)] = []
    var started: [Started] = []
    var isHeld: Bool
    var finishesCancelled = false
    /// The calls after the ends of the tasks that were cancelled and go on.
    var cancelled: [String: @Sendable () -> Void] = [:]
  }
  private let state: Monitor<State>
  private let transport = SocketTransport()
  private let fault: @Sendable (Int, BackgroundTask) -> Fault?

  /// `fault` gets the number of the task, counted from 0.
  init(isHeld: Bool = false, fault: @escaping @Sendable (Int, BackgroundTask) -> Fault? = { _, _ in nil }) {
    state = Monitor(State(isHeld: isHeld))
    self.fault = fault
  }

  var started: [Started] { state.update(waking: .none) { $0.started } }
  var isIdle: Bool { state.update(waking: .none) { $0.running.isEmpty } }
  /// Body bytes of all tasks.
  var bytes: Int64 { started.filter { !$0.isResumed }.reduce(0) { $0 + $1.task.length } }
  /// While this is true, tasks start and do not send.
  var isHeld: Bool {
    get { state.update(waking: .none) { $0.isHeld } }
    set { state.update { $0.isHeld = newValue } }
  }

  /// Tasks that are cancelled go on, as when the server has got their bodies before the system cancels them.
  var finishesCancelled: Bool {
    get { state.update(waking: .none) { $0.finishesCancelled } }
    set { state.update { $0.finishesCancelled = newValue } }
  }

  func connect(_ receiver: any BackgroundTaskReceiver) -> [String] {
    let (labels, events) = state.update { state in
      state.receiver = receiver
      defer { state.undelivered = [] }
      return (Array(state.running.keys), state.undelivered)
    }
    for event in events { receiver.ended(event.label, event.end) }
    if !events.isEmpty { receiver.deliveredAll() }
    return labels
  }

  func disconnect() { state.update { $0.receiver = nil } }

  func start(_ task: BackgroundTask) {
    let number = note(task, isResumed: false)
    run(task) { [transport, fault] sent in
      let on = Exchange(sent: sent)
      var body: BlobSlice?
      if let file = task.body { body = BlobSlice(FileSource(file), length: task.length) }
      switch fault(number, task) {
      case .answers(let status): return .response(HTTPResponse(head: HTTPHead(status: status, headers: [:])))
      case .answersWith(let status, let fields):
        return .response(HTTPResponse(head: HTTPHead(status: status, headers: fields)), unsent: task.length)
      case .breaksAfter(let bytes):
        body = body.map {
          BlobSlice(FaultySource($0.source, .fail(at: bytes, BlobError(.io, "cut"), times: 1)), length: $0.length)
        }
      case .breaksResumably(let bytes):
        let url = try? await Self.begin(task, bytes, over: transport)
        return .failed(TransportError(.broken, "cut"), resumeData: url.map { Array($0.text.utf8) })
      case nil: break
      }
      do throws(TransportError) {
        return .response(try await transport.send(task.request, body: body, on))
      } catch {
        let error = error.code == .source ? TransportError(.broken, "\(task.request.url): the connection broke") : error
        return .failed(error, resumeData: nil)
      }
    }
  }

  /// As iOS does it, by the IETF's protocol.
  func resume(_ data: [UInt8], _ task: BackgroundTask) {
    _ = note(task, isResumed: true)
    run(task) { [transport] sent in
      let version = ("Upload-Draft-Interop-Version", "8")
      guard let file = task.body, let url = HTTPURL(String(decoding: data, as: UTF8.self)) else {
        return .failed(TransportError(.badRequest, "no resume data"), resumeData: nil)
      }
      do throws(TransportError) {
        let held = try await transport.send(
          HTTPRequest("HEAD", url, HTTPHeaders(dictionaryLiteral: version)), body: nil, Exchange())
        guard let offset = held.headers["Upload-Offset"].flatMap({ Int64($0) }) else { return .response(held) }
        let append = HTTPRequest(
          "PATCH", url,
          [
            "Upload-Draft-Interop-Version": "8", "Upload-Offset": String(offset), "Upload-Complete": "?1",
            "Content-Type": "application/partial-upload",
          ])
        let rest = BlobSlice(FileSource(file), start: offset, length: task.length - offset)
        return .response(try await transport.send(append, body: rest, Exchange(sent: sent)))
      } catch {
        return .failed(error, resumeData: nil)
      }
    }
  }

  /// Leaves on the server what a creation leaves that breaks after some of its bytes. Returns the URL of the upload.
  private static func begin(
    _ task: BackgroundTask, _ count: Int64, over transport: any Transport
  ) async throws -> HTTPURL {
    var creation = task.request
    creation.headers["Upload-Complete"] = "?0"
    let created = try await transport.send(creation, body: nil, Exchange())
    let url = try #require(created.headers["Location"].flatMap { creation.url.resolve($0) })
    let append = HTTPRequest(
      "PATCH", url,
      [
        "Upload-Draft-Interop-Version": "8", "Upload-Offset": "0", "Upload-Complete": "?0",
        "Content-Type": "application/partial-upload",
      ])
    let file = try #require(task.body)
    _ = try await transport.send(append, body: BlobSlice(FileSource(file), length: count), Exchange())
    return url
  }

  func cancel(_ label: String, _ done: @escaping @Sendable () -> Void = {}) {
    let goesOn = state.update { state in
      guard state.finishesCancelled, state.running[label] != nil else { return false }
      state.cancelled[label] = done
      return true
    }
    if goesOn { return }
    state.update { $0.running[label] }?.cancel()
    done()
  }

  private func note(_ task: BackgroundTask, isResumed: Bool) -> Int {
    state.update { state in
      state.started.append(Started(task: task, isResumed: isResumed))
      return state.started.count - 1
    }
  }

  private func run(
    _ task: BackgroundTask, _ body: @escaping @Sendable (@escaping @Sendable (Int) -> Void) async -> BackgroundTaskEnd
  ) {
    state.update { state in
      state.running[task.label] = Task { [self] in
        while isHeld, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(2)) }
        let total = Mutex<Int64>(0)
        var end = await send()
        // The system waits until there is a network.
        while case .failed(let error, _) = end, [.resolve, .connect].contains(error.code), !Task.isCancelled {
          try? await Task.sleep(for: .milliseconds(5))
          end = await send()
        }
        self.state.update { $0.cancelled.removeValue(forKey: task.label) }?()
        let receiver = self.state.update { state -> (any BackgroundTaskReceiver)? in
          state.running[task.label] = nil
          if state.receiver == nil { state.undelivered.append((task.label, end)) }
          return state.receiver
        }
        receiver?.ended(task.label, end)
        receiver?.deliveredAll()
        func send() async -> BackgroundTaskEnd {
          await body { [self] count in
            let sum = total.withLock { total in
              total += Int64(count)
              return total
            }
            self.state.update(waking: .none) { $0.receiver }?.sent(task.label, total: sum)
          }
        }
      }
    }
  }
}
