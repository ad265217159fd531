@testable import BlobHTTP

/// Requests as they come from a connection: whole, and in pieces as the first byte says. Both must find the same.
func fuzzRequest(_ data: UnsafeRawBufferPointer) {
  guard data.count > 1 else { return }
  let bytes = Array(data[1...])
  precondition(
    requests(bytes, .max) == requests(bytes, Int(data[0] & 63) + 1), "a split has changed what is read")
}

/// All that can be seen of the requests.
private func requests(_ bytes: [UInt8], _ piece: Int) -> [UInt8] {
  var parser = RequestParser()
  var (pending, seen, rest): ([UInt8], [UInt8], ArraySlice<UInt8>) = ([], [], bytes[...])
  while !rest.isEmpty {
    pending += rest.prefix(piece)
    rest = rest.dropFirst(piece)
    while !pending.isEmpty || !parser.isBetweenRequests {
      let ahead = parser.contentAhead
      var taken = 0
      switch pending.withUnsafeBytes({ parser.next(of: $0) }) {
      case .more: taken = -1
      case .framing(let count): taken = count
      case .head(let count, let head):
        taken = count
        precondition(head.contentLength ?? 0 >= 0)
        seen += Array("<\(head.method) \(head.target) \(head.headers.fields) \(head.contentLength ?? -1)>".utf8)
      case .content(let count):
        precondition(1...pending.count ~= count && Int64(count) <= ahead)
        seen += pending.prefix(count)
        taken = count
      case .end(let count, let trailers):
        taken = count
        seen += Array("<end \(trailers.fields)>".utf8)
      case .malformed(let problem): return seen + Array("<\(problem.status)>".utf8)
      }
      if taken < 0 { break }
      pending.removeFirst(taken)
    }
  }
  return seen
}
