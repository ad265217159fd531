@testable import BlobHTTP

/// The first byte says into which pieces the rest is cut, as a body whose boundary is "B". Read whole and read in pieces, it
/// must give the same parts and the same refusal.
func fuzzMultipart(_ data: UnsafeRawBufferPointer) {
  guard data.count > 1 else { return }
  let body = UnsafeRawBufferPointer(rebasing: data[1...])
  precondition(reading(body, .max) == reading(body, Int(data[0] & 63) + 1), "a split has changed what is read")
}

/// All that can be seen of a body, in one line of text and bytes.
private func reading(_ body: UnsafeRawBufferPointer, _ piece: Int) -> [UInt8] {
  let parser = MultipartParser(boundary: [UInt8(ascii: "B")])
  var seen: [UInt8] = []
  do throws(MultipartError) {
    var start = 0
    while start < body.count {
      let end = start + min(piece, body.count - start)
      var bytes = UnsafeRawBufferPointer(rebasing: body[start..<end])
      while let event = try parser.next(&bytes) {
        switch event {
        case .part(let head): seen += Array("<\(head.name) \(head.fileName ?? [0]) \(head.contentType ?? "")>".utf8)
        case .bytes(let bytes): seen += bytes
        case .end: seen += Array("<end>".utf8)
        }
      }
      start = end
    }
    try parser.finish()
  } catch {
    // Content that came before the refusal depends on the pieces; the refusal does not.
    return Array("\(error)".utf8)
  }
  return seen
}
