import BlobHTTP
import Blobs
import Synchronization

extension Uploader {
  /// The content of a small file at the destination; nil: it has no file of that name. Throws if the content has more than
  /// `most` bytes, or cannot be read back there.
  package func content(of target: UploadTarget, atMost most: Int) async throws(UploadError) -> [UInt8]? {
    try await patiently("\(target.path)") { () async throws(UploadError) in
      let context = context()
      let url = try await destination.uploadProtocol.place(of: target, location: nil, context)
      var request = HTTPRequest("GET", url)
      let content = Mutex<[UInt8]>([])
      let on = Exchange(received: { bytes throws(BlobError) in
        let isShort = content.withLock { content in
          if content.count + bytes.count <= most { content += bytes }
          return content.count + bytes.count <= most
        }
        if !isShort { throw BlobError(.unsupported, "GET \(url): the content has more than \(most) bytes") }
      })
      let response = try await context.send(following: &request, on)
      if [404, 410].contains(response.status) { return nil }
      if response.status != 200 { throw UploadError(reading: request, response) }
      return content.withLock { $0 }
    }
  }
}
