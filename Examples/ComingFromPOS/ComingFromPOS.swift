// The article ComingFromPOSInputStreamLibrary shows this code, which replaces calls of POSInputStreamLibrary.
//   ComingFromPOSExample      reads streams over data sources of its own, and compares the bytes
import BlobStreams
import Blobs
import Foundation

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
      guard let body = request.httpBodyStream as? BlobInputStream else { throw BlobError(.io, "there is no body") }
      try check(body, squares, from: 0)
    }
    print("streams over a blocking and an evented data source have the right bytes")
  }

  private static func check(_ stream: BlobInputStream, _ expected: [UInt8], from offset: Int64) throws {
    let bytes = try read(stream, from: offset)
    guard bytes.elementsEqual(expected[Int(offset)...]) else {
      throw BlobError(.changed, "\(bytes.count) bytes from byte \(offset) are not the source's")
    }
  }
}
