import Blobs
import Platform

/// The name of a file in `.fullbore`, parsed into upload id and kind.
struct UploadFile {
  enum Kind: String { case data, info, done, join, bad, group }
  var id: UploadID
  var kind: Kind

  init?(_ name: BytePath) {
    // Most names in a full folder have this form: 32 digits, a dot, three to five letters.
    guard 36...38 ~= name.bytes.count, name.bytes[32] == UInt8(ascii: "."),
      let id = UploadID(String(decoding: name.bytes[..<32], as: UTF8.self)),
      let kind = Kind(rawValue: String(decoding: name.bytes[33...], as: UTF8.self))
    else { return nil }
    self.id = id
    self.kind = kind
  }
}

/// A file whose name contains the offset of an upload's first provisional byte, which no checksum has verified yet. The
/// name is created before the bytes are written. The offset is in the name because a file's content could be lost in a
/// power failure.
struct ProvisionalMark {
  var id: UploadID
  var start: Int64
  var name: BytePath { BytePath("\(id).\(start).mark") }

  init(id: UploadID, start: Int64) { (self.id, self.start) = (id, start) }

  init?(_ name: BytePath) {
    let parts = name.description.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2] == "mark", let id = UploadID(parts[0]), let start = Int64(parts[1]), start >= 0
    else { return nil }
    self.init(id: id, start: start)
  }

  func dropBytes(in store: Folder) throws(ServerError) {
    guard let status = try store.status(id.data), Int64(status.st_size) > start else { return }
    let file = try store.open(id.data, O_RDWR)
    if ftruncate(file.number, off_t(start)) != 0 { throw store.failed("drop bytes of upload", id.description) }
  }
}

extension UploadID {
  var data: BytePath { BytePath("\(self).data") }
  var info: BytePath { BytePath("\(self).info") }
  var done: BytePath { BytePath("\(self).done") }
  var join: BytePath { BytePath("\(self).join") }
  /// The members of a group that is being published.
  var group: BytePath { BytePath("\(self).group") }
  /// A damaged record that was set aside.
  var bad: BytePath { BytePath("\(self).bad") }
}
