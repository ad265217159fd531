// Uploads bytes through URLSession with their exact length, and reports progress.
//   URLSessionUploadExample
import BlobServer
import BlobURLSession
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let film = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

let folder = FileManager.default.temporaryDirectory.appending(path: "urlsession-example-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let server = try Server(ServerOptions(folder: BytePath(folder.path), port: 0))

var request = URLRequest(url: URL(string: server.url + "film.mov")!)
request.httpMethod = "PUT"
request.setValue("video/quicktime", forHTTPHeaderField: "Content-Type")

var upload = StreamedUpload(DataSource(film))
upload.progress = { sent, length in print("\(sent) of \(length ?? 0) bytes") }
// If the server requires authentication, the bytes are read and sent again.
upload.authorization = { _ in "Bearer let me in" }
let answer = try await upload.send(request)
print("the server says", answer.status)

let arrived = try Data(contentsOf: folder.appending(path: "film.mov"))
server.stop(grace: .zero)
try FileManager.default.removeItem(at: folder)
exit(answer.isSuccess && arrived.elementsEqual(film) ? 0 : 1)
