// Splits a source into five parts, sends them concurrently in separate requests, and joins them again.
//   SplitUploadExample
import BlobClient
import BlobHTTP
import BlobServer
import Blobs
import Foundation

let film = (0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31) }

let folder = FileManager.default.temporaryDirectory.appending(path: "split-example-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let server = try Server(ServerOptions(folder: BytePath(folder.path), port: 0))

// The last part contains the remainder. No part is in memory: each opens the source at its own first byte.
let parts = try BlobParts(DataSource(film), count: 5, Cancellation())
let transport = SocketTransport(.init(connections: 5))
let url = HTTPURL(server.url)!
let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
  for (number, part) in parts.enumerated() {
    group.addTask {
      let request = HTTPRequest("PUT", url.appending(pathBytes: "film.mov.\(number)".utf8))
      return try await transport.send(request, body: part.slice, Exchange()).status
    }
  }
  var statuses: [Int] = []
  for try await status in group { statuses.append(status) }
  return statuses
}

var whole = Data()
for number in 0..<parts.count {
  let part = try Data(contentsOf: folder.appending(path: "film.mov.\(number)"))
  print("part \(number): \(part.count) bytes")
  whole += part
}
server.stop(grace: .zero)
try FileManager.default.removeItem(at: folder)
print("the server said", statuses)
exit(statuses.allSatisfy { 200..<300 ~= $0 } && whole.elementsEqual(film) ? 0 : 1)
