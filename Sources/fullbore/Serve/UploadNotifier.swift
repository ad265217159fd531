import BlobClient
import BlobHTTP
import BlobServer
import Blobs
import Synchronization

/// Posts a JSON object to a URL for each received file.
struct UploadNotifier: Sendable {
  let url: HTTPURL
  private let transport: SocketTransport
  /// The pauses between the attempts for one file.
  private let pauses: [Duration]
  private let outage: NotifierOutage

  static let pauses: [Duration] = [1, 2, 4, 8, 15, 30, 60, 60, 60].map { .seconds($0) }

  /// `notice`: gets lines for the operator, once an outage begins and once it is over.
  init(
    _ url: HTTPURL, pauses: [Duration] = Self.pauses, timeout: Duration = .seconds(15),
    notice: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    (self.url, self.pauses) = (url, pauses)
    outage = NotifierOutage("\(url.scheme)://\(url.host):\(url.port)", notice)
    transport = SocketTransport(
      SocketTransport.Options(connections: 1, noProgress: timeout, finishing: timeout, connect: timeout))
  }

  /// Sends the object, several times if this may help. Returns what went wrong; nil: nothing.
  func send(_ entry: FileQueue<ReceivedFile>.Entry) async -> String? {
    var line = JSONLine(received: entry.file)
    line.add("time", entry.time.iso)
    let body = BlobSlice(DataSource(line.text))
    var pauses = pauses[...]
    while true {
      guard let problem = await attempt(body) else {
        outage.end()
        return nil
      }
      // The end of this process has cancelled the attempt, which says nothing of the URL.
      if Task.isCancelled { return problem.text }
      let pause = problem.mayPass ? pauses.popFirst() : nil
      outage.note(problem.text, of: entry.file, isTriedAgain: problem.mayPass)
      guard let pause else {
        outage.noteGivenUp()
        return problem.text
      }
      try? await Task.sleep(for: pause)
    }
  }

  /// Why the last attempt failed; nil: it has succeeded.
  var problem: String? { outage.problem }

  /// Call after the last file: reports how many were given up in an outage that is not over.
  func finish() { outage.finish() }

  private func attempt(_ body: BlobSlice) async -> (text: String, mayPass: Bool)? {
    do throws(TransportError) {
      let answer = try await transport.send(
        HTTPRequest("POST", url, ["Content-Type": "application/json"]), body: body, Exchange())
      switch answer.status {
      case 200...299: return nil
      // These may be answered otherwise later. RFC 9110 §15.5.9, RFC 8470 §5.2, RFC 6585 §4.
      case 408, 425, 429, 500...599: return ("the answer was \(answer.status)", true)
      default: return ("the answer was \(answer.status)", false)
      }
    } catch {
      return (error.message, error.code != .badRequest && error.code != .cancelled)
    }
  }
}

/// The time in which a URL takes no notification. It is reported at its begin and at its end, and not for each file.
private final class NotifierOutage: Sendable {
  private struct State {
    /// nil: there is no outage.
    var problem: String?
    /// Files that were given up since the outage began.
    var givenUp = 0
  }
  private let state = Mutex(State())
  private let place: String
  private let notice: @Sendable (String) -> Void

  init(_ place: String, _ notice: @escaping @Sendable (String) -> Void) { (self.place, self.notice) = (place, notice) }

  var problem: String? { state.withLock { $0.problem } }

  func note(_ problem: String, of file: ReceivedFile, isTriedAgain: Bool) {
    let isFirst = state.withLock { state in
      defer { state.problem = problem }
      return state.problem == nil
    }
    if !isFirst { return }
    notice(
      "\(place) was not told of '\(file.path)': \(problem)"
        + (isTriedAgain ? ": trying again, and what is received meanwhile waits" : ""))
  }

  func noteGivenUp() { state.withLock { $0.givenUp += 1 } }

  func end() {
    let before = state.withLock { state in
      defer { state = State() }
      return state
    }
    if before.problem != nil {
      notice("\(place) takes notifications again\(before.givenUp > 0 ? "; it \(Self.sum(before.givenUp))" : "")")
    }
  }

  func finish() {
    let count = state.withLock { $0.givenUp }
    if count > 0 { notice("\(place) \(Self.sum(count))") }
  }

  private static func sum(_ count: Int) -> String { "was not told of \(Quantity.plural(count, "file"))" }
}

extension JSONLine {
  /// What is said of a received file, to programs.
  init(received file: ReceivedFile) {
    self.init("received")
    add(path: file.path)
    add("length", file.length)
    if file.wasThere { add("unchanged", true) }
    add(file.sender)
  }

  /// Adds what is known of a client.
  mutating func add(_ sender: Sender?) {
    if let address = sender?.address { add("address", address) }
    if let agent = sender?.agent { add("agent", agent) }
  }
}
