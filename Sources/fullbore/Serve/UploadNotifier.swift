import BlobClient
import BlobHTTP
import BlobServer
import Blobs

/// Posts a JSON object to a URL for each received file.
struct UploadNotifier: Sendable {
  let url: HTTPURL
  private let transport: SocketTransport
  /// The pauses between the attempts for one file.
  private let pauses: [Duration]

  static let pauses: [Duration] = [1, 2, 4, 8, 15, 30, 60, 60, 60].map { .seconds($0) }

  init(_ url: HTTPURL, pauses: [Duration] = Self.pauses, timeout: Duration = .seconds(15)) {
    (self.url, self.pauses) = (url, pauses)
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
      guard let problem = await attempt(body) else { return nil }
      guard problem.mayPass, let pause = pauses.popFirst(), !Task.isCancelled else { return problem.text }
      try? await Task.sleep(for: pause)
    }
  }

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

extension JSONLine {
  /// What is said of a received file, to programs.
  init(received file: ReceivedFile) {
    self.init("received")
    add(path: file.path)
    add("length", file.length)
    if file.wasThere { add("unchanged", true) }
    if let address = file.sender?.address { add("address", address) }
    if let agent = file.sender?.agent { add("agent", agent) }
  }
}
