import BlobTesting
import Blobs
import Foundation

/// A TCP proxy on 127.0.0.1 that keeps every byte of its clients, also those that it does not pass on.
final class RecordingRelay: Sendable {
  /// A range of a file's bytes as a request had it.
  struct Segment: Sendable {
    /// The URL of the upload, or of the creation.
    var url: String
    var start: Int
    var bytes: [UInt8]
  }
  private struct Connection: Sendable {
    var sent: [UInt8] = []
    var received: [UInt8] = []
    /// Some of its bytes were not passed on, so nothing that follows them is: TCP never has a gap.
    var isCut = false
  }
  private struct State: Sendable {
    var connections: [Connection] = []
    var forwarded = 0
    var most = Int.max
    var open: Set<Int32> = []
  }

  let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  init(to target: Int) {
    (listener, port) = Loopback.listen()
    SystemThread.start("relay-accept") { [listener, state] in
      while let client = Loopback.accept(listener) {
        guard let server = Loopback.connect(port: target) else {
          Loopback.close(client)
          continue
        }
        let number = state.update { state in
          state.open.formUnion([client, server])
          state.connections.append(Connection())
          return state.connections.count - 1
        }
        SystemThread.start("relay-up") { Self.copy(client, to: server, number, state, isUp: true) }
        SystemThread.start("relay-down") { Self.copy(server, to: client, number, state, isUp: false) }
      }
      Loopback.close(listener)
    }
  }

  deinit {
    Loopback.shut(listener)
    for socket in state.update({ $0.open }) { Loopback.shut(socket) }
  }

  /// Passes on at most this many more bytes of all clients. A connection that has lost bytes by this passes on nothing
  /// more, also if the limit is raised while some of its bytes are still on the way.
  func forward(atMost most: Int) { state.update { ($0.forwarded, $0.most) = (0, most) } }

  /// Bytes of all clients so far.
  var count: Int { state.update { $0.connections.reduce(0) { $0 + $1.sent.count } } }

  /// All bytes of all clients, one connection after the other.
  var sent: [UInt8] { state.update { $0.connections.flatMap(\.sent) } }

  private static func copy(_ from: Int32, to: Int32, _ number: Int, _ state: Monitor<State>, isUp: Bool) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = Loopback.read(from, into: buffer), count > 0 {
      let passed = state.update { state in
        if !isUp {
          state.connections[number].received += buffer[..<count]
          return count
        }
        state.connections[number].sent += buffer[..<count]
        let passed = state.connections[number].isCut ? 0 : min(count, state.most - state.forwarded)
        if passed < count { state.connections[number].isCut = true }
        state.forwarded += passed
        return passed
      }
      if passed > 0, !Loopback.write(to, UnsafeRawBufferPointer(rebasing: buffer[..<passed])) { break }
    }
    // The other side ends too. The descriptors stay open until the relay is gone, so that no number is used twice.
    Loopback.shut(from)
    Loopback.shut(to)
  }

  /// The bodies of all POST and PATCH requests of tus. A creation is named by the URL that the server has answered with.
  var segments: [Segment] {
    state.update { $0.connections }.flatMap { connection in
      let places = Self.heads(in: connection.received).compactMap { Self.field("location", in: $0) }
      var (segments, rest, creations) = ([Segment](), connection.sent[...], 0)
      while let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) {
        let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
        let length = Self.field("content-length", in: head).flatMap { Int($0) } ?? 0
        let body = Array(rest[end.upperBound...].prefix(length))
        rest = rest[min(rest.endIndex, end.upperBound + length)...]
        let words = head.prefix { $0 != "\r\n" }.split(separator: " ")
        var url = words.count > 1 ? String(words[1]) : ""
        if words.first == "POST" {
          url = places.indices.contains(creations) ? Self.path(places[creations]) : "creation \(segments.count)"
          creations += 1
        }
        if !body.isEmpty {
          let start = Self.field("upload-offset", in: head).flatMap { Int($0) } ?? 0
          segments.append(Segment(url: url, start: start, bytes: body))
        }
      }
      return segments
    }
  }

  /// The parts of a stream of responses that may have fields. Their contents are short.
  private static func heads(in bytes: [UInt8]) -> [String] {
    String(decoding: bytes, as: UTF8.self).components(separatedBy: "HTTP/1.1 201").dropFirst().map { $0 }
  }

  private static func field(_ name: String, in head: String) -> String? {
    for line in head.split(separator: "\r\n") {
      guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name else { continue }
      return line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    return nil
  }

  private static func path(_ url: String) -> String {
    guard let scheme = url.firstRange(of: "://") else { return url }
    return String(url[scheme.upperBound...].drop { $0 != "/" })
  }
}
