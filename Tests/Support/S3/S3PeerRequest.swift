import BlobTesting
import BlobHTTP
import BlobUpload
import Blobs

/// A request as received.
public struct S3PeerRequest: Sendable {
  public var method: String
  /// The percent-encoded path.
  public var path: String
  public var rawQuery: String?
  /// Header fields with lower-case names.
  public var fields: [String: String]
  public var body: [UInt8] = []

  /// The decoded value of a query parameter; empty if it has no value, nil if it is missing.
  public func query(_ name: String) -> String? {
    for item in rawQuery?.split(separator: "&") ?? [] {
      let key = item.prefix { $0 != "=" }
      if key == name { return String(decoding: percentDecoded(item.dropFirst(key.count + 1).utf8), as: UTF8.self) }
    }
    return nil
  }

  init?(_ lines: [String]) {
    let words = lines.first?.split(separator: " ") ?? []
    guard words.count == 3 else { return nil }
    method = String(words[0])
    path = String(words[1].prefix { $0 != "?" })
    rawQuery = words[1].contains("?") ? String(words[1].dropFirst(path.count + 1)) : nil
    fields = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let name = line[..<colon].lowercased()
      // Repeated fields are refused, because they are ambiguous.
      if fields[name] != nil { return nil }
      fields[name] = String(line[line.index(after: colon)...]).trimmed
    }
  }
}

struct S3PeerResponse {
  var status: Int
  var fields: [(String, String)] = []
  var body: [UInt8] = []
  /// Content-Length of the response to HEAD, which has no body.
  var length: Int?

  static func xml(_ text: String, _ fields: [(String, String)] = []) -> S3PeerResponse {
    S3PeerResponse(
      status: 200, fields: fields + [("Content-Type", "application/xml")],
      body: Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)".utf8))
  }
}

struct S3PeerError: Error {
  var status: Int
  var code: String
  var more = ""
  init(_ status: Int, _ code: String, _ more: String = "") {
    (self.status, self.code, self.more) = (status, code, more)
  }

  var answer: S3PeerResponse {
    var answer = S3PeerResponse.xml("<Error><Code>\(code)</Code><Message>this is \(code)</Message>\(more)</Error>")
    answer.status = status
    return answer
  }
}

/// One persistent client connection.
struct S3PeerConnection {
  let socket: Int32
  let state: Monitor<S3PeerState>
  let options: S3Peer.Options

  init(_ socket: Int32, _ state: Monitor<S3PeerState>, _ options: S3Peer.Options) {
    (self.socket, self.state, self.options) = (socket, state, options)
  }

  func serve() {
    let input = Input(socket: socket)
    while let lines = input.head(), var request = S3PeerRequest(lines) {
      state.update { $0.begun += 1 }
      guard let length = request.fields["content-length"].map({ Int($0) }) ?? 0,
        request.fields["transfer-encoding"] == nil,
        let body = input.take(length)
      else { break }
      request.body = body
      let number = state.update { state in
        state.requests.append("\(request.method) \(request.path)\(request.rawQuery.map { "?" + $0 } ?? "")")
        return state.requests.count - 1
      }
      let answer: S3PeerResponse
      do {
        if let (status, code) = options.refuse(number, request) { throw S3PeerError(status, code) }
        request.body = try S3PeerAuthenticator(options).body(of: request)
        answer = try S3PeerHandler(state, options).answer(request)
      } catch {
        answer = (error as? S3PeerError ?? S3PeerError(500, "InternalError")).answer
      }
      if !send(answer, to: request) { break }
    }
    // Closes under the lock, so that `cutAll` cannot shut down another socket that reuses the descriptor's number.
    state.update { state in if state.open.remove(socket) != nil { Loopback.close(socket) } }
  }

  private func send(_ answer: S3PeerResponse, to request: S3PeerRequest) -> Bool {
    var head = "HTTP/1.1 \(answer.status) Said\r\nServer: S3Peer\r\n"
    head += "Date: \(HTTPDateText.text(S3PeerAuthenticator(options).now))\r\n"
    for (name, value) in answer.fields { head += "\(name): \(value)\r\n" }
    if answer.status != 204 { head += "Content-Length: \(answer.length ?? answer.body.count)\r\n" }
    let bytes = Array("\(head)\r\n".utf8) + (request.method == "HEAD" ? [] : answer.body)
    return bytes.withUnsafeBytes { Loopback.write(socket, $0) }
  }

  /// Reads in large pieces and buffers bytes that are not needed yet.
  private final class Input {
    let socket: Int32
    private var ahead: [UInt8] = []
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)

    init(socket: Int32) { self.socket = socket }
    deinit { buffer.deallocate() }

    private func more() -> Bool {
      let count = Loopback.read(socket, into: buffer)
      ahead += buffer[..<count]
      return count > 0
    }

    func head() -> [String]? {
      let end = Array("\r\n\r\n".utf8)
      while true {
        if let range = ahead.firstRange(of: end) {
          let text = String(decoding: ahead[..<range.lowerBound], as: UTF8.self)
          ahead.removeSubrange(..<range.upperBound)
          return text.split(separator: "\r\n").map(String.init)
        }
        if ahead.count > 64 << 10 || !more() { return nil }
      }
    }

    func take(_ count: Int) -> [UInt8]? {
      guard 0...(1 << 30) ~= count else { return nil }
      ahead.reserveCapacity(count)
      while ahead.count < count { if !more() { return nil } }
      let body = Array(ahead[..<count])
      ahead.removeSubrange(..<count)
      return body
    }
  }
}
