// Combines source wrappers: the bytes are counted and encrypted while they are sent, and the server never gets the
// plain film.
//   EncryptedUploadExample
import BlobCrypto
import BlobClient
import BlobHTTP
import BlobServer
import Blobs
import Foundation

let film = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

let folder = FileManager.default.temporaryDirectory.appending(path: "encrypted-example-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let server = try Server(ServerOptions(folder: BytePath(folder.path), port: 0))

let key = try EncryptionKey((0..<32).map { _ in UInt8.random(in: 0...255) })
let counted = CountingSource(DataSource(film))
let encrypted = EncryptingSource(counted, key: key, name: "film.mov")
// Store the version with the encrypted bytes: it is needed for decryption.
let version = try encrypted.info(Cancellation()).validator!.version

let answer = try await SocketTransport().send(
  HTTPRequest("PUT", HTTPURL(server.url + "film.mov")!), body: BlobSlice(encrypted), Exchange())
print("the server says \(answer.status); \(counted.count) bytes were read")

// The bytes that arrived differ from the film, and decrypt to it.
let arrived = try [UInt8](Data(contentsOf: folder.appending(path: "film.mov")))
server.stop(grace: .zero)
try FileManager.default.removeItem(at: folder)

let reader = try DecryptingSource(DataSource(arrived), key: key, version: version).open(at: 0, Cancellation())
var (plain, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
while true {
  let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
  if count == 0 { break }
  plain += buffer[..<count]
}
let isRight = answer.isSuccess && counted.count == film.count && arrived != film && plain == film
print(isRight ? "the film can be had again" : "something is wrong")
exit(isRight ? 0 : 1)
