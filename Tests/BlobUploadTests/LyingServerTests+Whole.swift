import BlobHTTP
import BlobTesting
import Blobs

@testable import BlobUpload

// Servers that answer success to everything, or have files of another length.
extension Lie {
  static let everything: [Lie] = [200, 201, 204].flatMap { status in
    let answer: HTTPPeer.Answer = { _ in .init(status) }
    let resumable = IETFResumable(wholeUpTo: length)
    return [
      Lie("\(status) to everything", PlainPut(), answer),
      Lie("\(status) to everything", PlainPut(), isPipe: true, answer),
      Lie("\(status) to everything", resumable, wholeUpTo: length, answer),
      Lie("\(status) to everything", WebDAV(), answer),
    ]
  }

  static let dav: [Lie] = [99_999, 100_001, 200_000].flatMap { size in
    let answer: HTTPPeer.Answer = { request in
      switch request.method {
      case "HEAD": .init(200, [:], [UInt8](repeating: 0, count: size))
      default: .init(201)
      }
    }
    return [
      Lie("it has \(size) bytes", WebDAV(), answer), Lie("it has \(size) bytes", WebDAV(), isPipe: true, answer),
    ]
  }
}
