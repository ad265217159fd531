// Uploads data that a device delivers to a callback, without a temporary file, in 64 KiB of memory.
//   CallbackUploadExample
import BlobClient
import BlobHTTP
import BlobServer
import BlobStreams
import Blobs
import Foundation

let film = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

/// Simulates a camera's library: calls `onUpdate` with each chunk on its own thread.
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
  // `writeAll` blocks while the buffer is full. It throws if the upload has failed, and the device could stop then.
  onUpdate: { chunk in try? chunk.withUnsafeBytes { try pair.output.writeAll($0) } },
  onEnd: { pair.output.close() })

// The length is declared, so that a device that stops half-way cannot produce an upload that looks complete.
let source = StreamSource(pair.input, length: Int64(film.count))
let answer = try await SocketTransport().send(
  HTTPRequest("PUT", HTTPURL(server.url + "film.mov")!), body: BlobSlice(source), Exchange())

let arrived = try Data(contentsOf: folder.appending(path: "film.mov"))
server.stop(grace: .zero)
try FileManager.default.removeItem(at: folder)
print("the server says \(answer.status), and has \(arrived.count) bytes")
exit(answer.isSuccess && arrived.elementsEqual(film) ? 0 : 1)
