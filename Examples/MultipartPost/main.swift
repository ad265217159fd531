// Posts a picture of 100 KiB and then a film of 5 GiB as forms, and shows that the film needs no more memory.
//   MultipartPostExample
import BlobClient
import BlobHTTP
import Blobs
import Foundation

/// The peak memory usage of this process in KiB.
func peakMemory() -> Int {
  var usage = rusage()
  #if os(Linux)
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss
  #else
    getrusage(RUSAGE_SELF, &usage)
    return usage.ru_maxrss >> 10
  #endif
}

/// Creates a sparse file of zeros, which uses no disk space.
func makeFile(_ name: String, _ size: Int64, in folder: URL) throws -> FileSource {
  let path = folder.appending(path: name).path
  let isMade = FileManager.default.createFile(atPath: path, contents: nil)
  guard isMade, truncate(path, off_t(size)) == 0 else { throw CocoaError(.fileWriteOutOfSpace) }
  return FileSource(BytePath(path))
}

let folder = FileManager.default.temporaryDirectory.appending(path: "form-example-\(UUID())")
try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let receiver = Receiver()
let transport = SocketTransport()

/// Posts the file as a form and returns the number of bytes that arrived.
func post(_ source: FileSource, as fileName: String, _ mimeType: String) async throws -> Int64 {
  var form = MultipartForm()
  form.appendField("Trip to the lake", name: "title")
  form.appendPart(source, name: "file", fileName: fileName, mimeType: mimeType)
  let url = HTTPURL("http://127.0.0.1:\(receiver.port)/upload")!
  let answer = try await transport.send(form.request(to: url), body: BlobSlice(form), Exchange())
  guard answer.isSuccess, let count = Int64(String(decoding: answer.body, as: UTF8.self)) else {
    throw CocoaError(.fileReadUnknown)
  }
  return count
}

let (small, large): (Int64, Int64) = (100 << 10, 5 << 30)
let picture = try await post(makeFile("a.jpg", small, in: folder), as: "a.jpg", "image/jpeg")
let before = peakMemory()
let film = try await post(makeFile("b.mov", large, in: folder), as: "b.mov", "video/quicktime")
let after = peakMemory()
try FileManager.default.removeItem(at: folder)

print("the picture: \(picture) bytes arrived, peak memory \(before) KiB")
print("the film: \(film) bytes arrived, peak memory \(after) KiB, \(after - before) KiB more")
// Both forms have the same fields; their sizes differ only by the lengths of the media types' names.
let (aroundPicture, aroundFilm) = (picture - small, film - large)
exit(aroundPicture > 0 && aroundFilm == aroundPicture + 5 && after - before <= 2048 ? 0 : 1)
