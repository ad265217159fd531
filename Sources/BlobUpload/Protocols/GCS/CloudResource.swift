import BlobHTTP
import Blobs

/// The JSON resource that describes a new object at the start of an upload.
/// https://cloud.google.com/storage/docs/json_api/v1/objects#resource
struct CloudResource {
  let json: [UInt8]

  /// The key under which Google's own tools and rclone store the modification time, in whole seconds since 1970.
  static let modificationTime = "goog-reserved-file-mtime"

  init(_ object: CloudObject, _ target: UploadTarget) {
    var metadata = target.metadata
    if let time = target.modificationTime, metadata[Self.modificationTime] == nil {
      metadata[Self.modificationTime] = String(time.seconds)
    }
    let pairs = metadata.sorted { $0.key < $1.key }.map { "\(JSONText.quoted($0.key)):\(JSONText.quoted($0.value))" }
    let name = String(decoding: PercentCoding.decoded(object.encodedName.utf8), as: UTF8.self)
    var text = "{\"name\":\(JSONText.quoted(name)),\"contentType\":\(JSONText.quoted(target.contentType))"
    if !pairs.isEmpty { text += ",\"metadata\":{\(pairs.joined(separator: ","))}" }
    json = Array("\(text)}".utf8)
  }

  static let contentType = "application/json; charset=UTF-8"
}

/// A multipart body with a small object: its resource, then its bytes. RFC 2387.
struct CloudWhole {
  let contentType: String
  let body: BlobSlice
  /// Number of bytes of the body before those of the object.
  let head: Int64

  init(_ resource: CloudResource, _ target: UploadTarget, _ content: BlobSlice) {
    // 128 random bits, which no file contains by accident.
    let boundary = MultipartForm().boundary
    let before =
      Array("--\(boundary)\r\nContent-Type: \(CloudResource.contentType)\r\n\r\n".utf8) + resource.json
      + Array("\r\n--\(boundary)\r\nContent-Type: \(target.contentType)\r\n\r\n".utf8)
    contentType = "multipart/related; boundary=\(boundary)"
    head = Int64(before.count)
    body = BlobSlice(
      ConcatenatedSource([
        DataSource(before), SlicedSource(content), DataSource(Array("\r\n--\(boundary)--\r\n".utf8)),
      ]))
  }
}
