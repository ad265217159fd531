// Uploads a file through URLSession, for bench.py. URLSessionBenchmark upload|body|file FILE URL
//   upload   StreamedUpload      body   a session of its own with setBody      file   Foundation's own stream of a file
import BlobStreams
import BlobURLSession
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

let arguments = CommandLine.arguments
guard arguments.count == 4, let url = URL(string: arguments[3]) else {
  print("usage: URLSessionBenchmark upload|body|file FILE URL")
  exit(2)
}
let (way, path) = (arguments[1], arguments[2])
let source = FileSource(BytePath(path))
guard let length = try source.info(Cancellation()).length else { fatalError("a file without a length: \(path)") }

var request = URLRequest(url: url)
request.httpMethod = "PUT"
let status: Int
if way == "upload" {
  status = try await StreamedUpload(source).send(request).status
} else {
  let configuration = URLSessionConfiguration.ephemeral
  if way == "body" {
    configuration.carryStreamedBodies()
    try request.setBody(.forURLLoading(source), length: length)
  } else {
    request.httpBodyStream = InputStream(fileAtPath: path)
    request.setValue("\(length)", forHTTPHeaderField: "Content-Length")
    // As `setBody` does, or Foundation on Linux announces chunks as well.
    request.setValue(" ", forHTTPHeaderField: "Transfer-Encoding")
  }
  let (_, response) = try await URLSession(configuration: configuration).data(for: request)
  status = (response as? HTTPURLResponse)?.statusCode ?? 0
}
guard 200..<300 ~= status else { fatalError("the server says \(status)") }
