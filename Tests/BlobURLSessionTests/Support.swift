import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let answerOK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func put(to port: Int, path: String = "/x") -> HTTPRequest {
  HTTPRequest("PUT", HTTPURL("http://127.0.0.1:\(port)\(path)")!)
}

func foundationPut(to port: Int, path: String = "/x") -> URLRequest {
  var request = URLRequest(url: URL(string: "http://127.0.0.1:\(port)\(path)")!)
  request.httpMethod = "PUT"
  return request
}

extension ScriptedPeer.Seen {
  /// The values of a field in one head; its name is case-insensitive.
  func values(_ name: String, inHead number: Int = 0) -> [String] {
    heads[number].components(separatedBy: "\r\n").filter { $0.lowercased().hasPrefix(name.lowercased() + ":") }
      .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
  }

  /// Body bytes of a connection with one request.
  func body(ofConnection number: Int = 0) -> ArraySlice<UInt8> {
    let bytes = received[number]
    let end = bytes.withUnsafeBytes { bytes in
      (3..<max(3, bytes.count)).first { bytes[$0] == 10 && bytes[$0 - 2] == 10 } ?? bytes.count - 1
    }
    return bytes[(end + 1)...]
  }
}

/// The events that an exchange reported.
final class Told: Sendable {
  private let counts = Mutex<[Int64]>([])
  func add(_ count: Int64) { counts.withLock { $0.append(count) } }
  var all: [Int64] { counts.withLock { $0 } }
  var sum: Int64 { all.reduce(0, +) }
}
