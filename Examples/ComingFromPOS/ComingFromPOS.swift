// The article ComingFromPOSInputStreamLibrary shows this code, which replaces calls of POSInputStreamLibrary.
//   ComingFromPOSExample      reads streams over data sources of its own, and compares the bytes
import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@main
struct ComingFromPOS {
  static func main() throws {
    let squares = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0) }
    for source in [Squares(count: 100_000), EventedBlobSource { Camera(squares) }] as [any BlobSource] {
      let all = streams(of: source) + streamsOfAnySource(source)
      for stream in all where !stream.isAsynchronous {
        try check(stream, squares, from: 70_000)
        try check(stream.reopened(), squares, from: 70_000)
      }
      let request = try request(with: source, to: URL(string: "http://localhost/photo.jpg")!)
      try check(request.httpBodyStream, squares)
      try checkRest(of: source, squares, from: 30_000)
      try checkFile(of: source, squares)
    }
    print("streams over a blocking and an evented data source have the right bytes")
  }

  /// A body that begins at an offset begins there again when it is sent again.
  private static func checkRest(of source: any BlobSource, _ bytes: [UInt8], from offset: Int64) throws {
    let url = URL(string: "http://localhost/photo.jpg")!
    let request = try request(with: source, from: offset, to: url)
    let length = try source.info(Cancellation()).length.map { "\($0 - offset)" }
    guard request.value(forHTTPHeaderField: "Content-Length") == length else {
      throw BlobError(.changed, "the request does not have the length of the rest")
    }
    try check(request.httpBodyStream, Array(bytes[Int(offset)...]))
    let delegate = BodyDelegate(source, from: offset)
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: nil)
    let task = session.dataTask(with: request)
    nonisolated(unsafe) var body: InputStream?
    delegate.urlSession(session, task: task, needNewBodyStream: { body = $0 })
    try check(body, Array(bytes[Int(offset)...]))
    delegate.urlSession(session, task: task, needNewBodyStreamFrom: 10_000) { body = $0 }
    try check(body, Array(bytes[Int(offset + 10_000)...]))
    session.invalidateAndCancel()
  }

  private static func checkFile(of source: any BlobSource, _ bytes: [UInt8]) throws {
    let path = NSTemporaryDirectory() + "/photo-\(UInt64.random(in: 0 ... .max))"
    // The folder is for temporary files.
    defer { try? FileManager.default.removeItem(atPath: path) }
    let file = URL(fileURLWithPath: path)
    try write(source, to: file)
    try check(InputStream(url: file), bytes)
  }

  /// Checks all bytes that a body gives.
  private static func check(_ body: InputStream?, _ expected: [UInt8]) throws {
    guard let body else { throw BlobError(.io, "there is no body") }
    body.open()
    defer { body.close() }
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
    while case let count = body.read(&buffer, maxLength: buffer.count), count != 0 {
      if count < 0 { throw BlobError(.io, "\(String(describing: body.streamError))") }
      bytes += buffer[..<count]
    }
    guard bytes == expected else { throw BlobError(.changed, "\(bytes.count) bytes are not those of the body") }
  }

  private static func check(_ stream: BlobInputStream, _ expected: [UInt8], from offset: Int64) throws {
    let bytes = try read(stream, from: offset)
    guard bytes.elementsEqual(expected[Int(offset)...]) else {
      throw BlobError(.changed, "\(bytes.count) bytes from byte \(offset) are not the source's")
    }
  }
}
