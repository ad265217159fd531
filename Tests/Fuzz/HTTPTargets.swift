@testable import BlobHTTP
@testable import BlobUpload
import Blobs

/// An answer as it comes from a connection: whole, and in pieces as the first byte says. Both must find the same.
func fuzzAnswer(_ data: UnsafeRawBufferPointer) {
  guard data.count > 1 else { return }
  let bytes = Array(data[1...])
  let method = data[0] & 64 == 0 ? "PUT" : "HEAD"
  precondition(
    answer(bytes, .max, method) == answer(bytes, Int(data[0] & 63) + 1, method), "a split has changed what is read")
}

/// All that can be seen of an answer.
private func answer(_ bytes: [UInt8], _ piece: Int, _ method: String) -> [UInt8] {
  var (frame, parser) = (ResponseFraming(), HeadParser())
  var (pending, seen, rest): ([UInt8], [UInt8], ArraySlice<UInt8>) = ([], [], bytes[...])
  var hasBegun = false
  while !rest.isEmpty {
    pending += rest.prefix(piece)
    rest = rest.dropFirst(piece)
    while frame.stage != .whole {
      let next = pending.withUnsafeBytes { frame.next(of: $0) }
      switch next {
      case .line(let count):
        if !hasBegun {
          let step = pending.withUnsafeBytes { parser.take(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
          switch step {
          case .interim(let head): seen += Array("<\(head.status)>".utf8)
          case .malformed: return seen + Array("<malformed>".utf8)
          case .nothing, .final: break
          }
          if let final = parser.final {
            hasBegun = true
            if !frame.begin(final, to: method) { return seen + Array("<refused>".utf8) }
            seen += Array("<\(final.status) \(final.headers.fields)>".utf8)
            _ = RemoteFacts(final, of: place)
          }
        }
        pending.removeFirst(count)
      case .content(let count):
        precondition(1...pending.count ~= count)
        seen += pending.prefix(count)
        pending.removeFirst(count)
      case .framing(let count): pending.removeFirst(count)
      case .more: break
      // What came before depends on the pieces.
      case .malformed, .lineTooLong, .sectionTooLong: return Array("<malformed>".utf8)
      }
      if next == .more { break }
    }
    if frame.stage == .whole { return seen + Array("<whole>".utf8) }
  }
  return seen
}

/// Values of fields, in all the ways that they are read.
func fuzzFields(_ data: UnsafeRawBufferPointer) {
  let value = text(data)
  if let seconds = HTTPDate.seconds(value) { precondition(0...253_402_300_799 ~= seconds) }
  _ = (StructuredField.boolean(value), StructuredField.integer(value), StructuredField.integers(value))
  _ = (DigestField.values(value), DigestField.wanted(value), ContentRange(value), Base64.decode(value))
  _ = (ContentDisposition.fileName(value), PercentCoding.decode(data), PercentCoding.decoded(data))
  _ = (PercentCoding.field(value), ContentDisposition.inline(data))
  var headers = HTTPHeaders()
  for name in [
    "Content-Length", "Retry-After", "Tus-Version", "Tus-Extension", "Tus-Max-Size", "Upload-Limit", "Upload-Offset",
    "ETag", "Last-Modified", "Date", "x-amz-bucket-region", "x-amz-checksum-crc32c",
  ] {
    headers.add(name, value)
  }
  _ = (headers.retryAfter, headers.bytes("Content-Length"), headers.list("Tus-Extension"), S3Object(headers))
  headers["Tus-Version"] = "1.0.0"
  if let limits = Tus().limits(from: headers) { plan(limits) }
  if let limits = IETFResumable().limits(from: headers) { plan(limits) }
  for status in [200, 206, 416] {
    if let facts = RemoteFacts(HTTPHead(status: status, headers: headers), of: place) {
      precondition(facts.length ?? 0 >= 0)
    }
  }
  _ = S3Multipart.seconds(value)
}

/// The parts that limits lead to.
func plan(_ limits: PartLimits) {
  for length in [nil, 0, 1, 1 << 30, .max] as [Int64?] {
    let plan = PartPlan(length: length, limits: limits)
    precondition(plan.partSize ?? 1 > 0)
    _ = plan.part(from: 1, number: 1)
    _ = plan.numbered()?.count
  }
}

/// A URL, and below it a reference as a `Location` has it.
func fuzzURLs(_ data: UnsafeRawBufferPointer) {
  let lines = data.split(separator: 10, maxSplits: 1).map(text)
  let base = HTTPURL("https://media.example:8443/a/b?c")!
  for line in lines {
    guard let url = HTTPURL(line) ?? base.resolve(line) else { continue }
    precondition(HTTPURL(url.text) != nil, "a URL that was read is not read again: \(url.text)")
    _ = (url.origin, url.isLoopback, url.resolve(lines.last!), url.key(in: "/media/"))
  }
  _ = base.appending(pathBytes: data)
  _ = S3Address(bucket: lines.first ?? "", endpoint: lines.last, region: "eu-west-1").url
}

private let place = HTTPURL("http://host.example/a")!
