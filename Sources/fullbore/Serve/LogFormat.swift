import BlobServer
import Blobs

/// The form of a line of the access log.
enum LogFormat: String, Sendable {
  /// The combined log format of web servers, with the bytes of the request's body and the duration in seconds at the
  /// end. The referrer is always `-`, since it may contain secrets.
  case common
  /// An object of JSON.
  case json

  /// The line, without a line end. It contains neither the query nor any header field but `User-Agent`.
  func line(_ request: AnsweredRequest) -> String {
    switch self {
    case .common: common(request)
    case .json: json(request)
    }
  }

  private func common(_ request: AnsweredRequest) -> String {
    let time = Timestamp(nanoseconds: request.time).common
    let asked = request.method.isEmpty ? "-" : "\(escaped(request.method.utf8)) \(escaped(request.path.bytes)) HTTP/1.1"
    let agent = request.client.agent.map { escaped($0.utf8) } ?? "-"
    let seconds = Quantity.fixed(Quantity.seconds(request.duration), decimals: 3)
    return "\(request.client.address ?? "-") - - [\(time)] \"\(asked)\" \(request.status) \(request.bytesSent) \"-\" "
      + "\"\(agent)\" \(request.bytesReceived) \(seconds)"
  }

  private func json(_ request: AnsweredRequest) -> String {
    var line = JSONLine("request")
    line.add("time", Timestamp(nanoseconds: request.time).iso)
    if let address = request.client.address { line.add("address", address) }
    line.add("method", request.method)
    line.add("path", request.path.description)
    line.add("status", request.status)
    line.add("received", request.bytesReceived)
    line.add("sent", request.bytesSent)
    line.add("seconds", seconds: request.duration)
    if let agent = request.client.agent { line.add("agent", agent) }
    return line.text
  }

  /// Every byte that could end the line or the quoted text, and every byte outside ASCII, becomes `\x1B`.
  private func escaped(_ bytes: some Sequence<UInt8>) -> String {
    var text = ""
    for byte in bytes {
      if 0x20..<0x7F ~= byte, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        text += "\\x" + (digits.utf8.count < 2 ? "0" : "") + digits
      }
    }
    return text
  }
}
