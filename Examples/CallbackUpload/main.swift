// A device hands over its bytes by a callback, and they go straight into an upload: no file, 64 KiB of memory.
//   CallbackUploadExample
import BlobClient
import BlobHTTP
import BlobServer
import BlobStreams
import Blobs
import Foundation

let film = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

/// A camera's library: it calls `onUpdate` with chunk after chunk, on a thread of its own.
func download(onUpdate: @escaping @Sendable ([UInt8]) -> Void, onEnd: @escaping @Sendable () -> Void) {
  Thread.detachNewThread {
    for start in stride(from: 0, to: film.count, by: 100_000) {
      onUpdate(Array(film[start..<min(start + 100_000, film.count)]))
    }
    onEnd()
  }
}

let folder = FileManager.default.temporaryDirectory.appending(path: "callback-example-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let server = try Server(ServerOptions(folder: BytePath(folder.path), port: 0))

let pair = BoundStreams(capacity: 64 << 10)
pair.output.open()
download(
  // Waits while the buffer is full. Where the upload has failed, it throws: the device may stop then.
  onUpdate: { chunk in try? chunk.withUnsafeBytes { try pair.output.writeAll($0) } },
  onEnd: { pair.output.close() })

// A device that stops half-way must not look complete: it says beforehand how much there is.
let source = StreamSource(pair.input, length: Int64(film.count))
let answer = try await SocketTransport().send(
  HTTPRequest("PUT", HTTPURL(server.url + "film.mov")!), body: BlobSlice(source), Exchange())

let arrived = try Data(contentsOf: folder.appending(path: "film.mov"))
server.stop(grace: .zero)
try FileManager.default.removeItem(at: folder)
print("the server says \(answer.status), and has \(arrived.count) bytes")
exit(answer.isSuccess && arrived.elementsEqual(film) ? 0 : 1)
