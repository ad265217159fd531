import BlobTesting
import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Handles requests after `S3PeerAuthenticator` has accepted them.
struct S3PeerHandler {
  let state: Monitor<S3PeerState>
  let options: S3Peer.Options

  init(_ state: Monitor<S3PeerState>, _ options: S3Peer.Options) { (self.state, self.options) = (state, options) }

  func answer(_ request: S3PeerRequest) throws -> S3PeerResponse {
    let key = try key(of: request)
    return try state.update { state throws in
      try answer(request, key, &state)
    }
  }

  /// The key of the requested object. The bucket is in the path, or at the start of the host name.
  private func key(of request: S3PeerRequest) throws -> String {
    var path = percentDecoded(request.path.dropFirst().utf8)
    if request.fields["host"]?.hasPrefix(options.bucket + ".") != true {
      let bucket = Array(options.bucket.utf8)
      guard path.starts(with: bucket), path.count == bucket.count || path[bucket.count] == UInt8(ascii: "/") else {
        throw S3PeerError(404, "NoSuchBucket")
      }
      path = Array(path.dropFirst(bucket.count + 1))
    }
    guard let key = String(validating: path, as: UTF8.self) else { throw S3PeerError(400, "InvalidURI") }
    if path.count > 1024 { throw S3PeerError(400, "KeyTooLongError") }
    return key
  }

  private func answer(_ request: S3PeerRequest, _ key: String, _ state: inout S3PeerState) throws -> S3PeerResponse {
    let upload = request.query("uploadId")
    try checkFields(request, isOfBucket: key.isEmpty)
    switch request.method {
    case "GET" where request.query("uploads") != nil: return listUploads(request, state)
    case "GET" where key.isEmpty && request.query("list-type") == "2": return S3PeerList(state, options).answer(request)
    case "GET" where key.isEmpty: return .xml("<ListBucketResult><Name>\(options.bucket)</Name></ListBucketResult>")
    case "GET" where upload != nil:
      return try listParts(
        request, try find(upload!, key, state, or: options.isLikeCeph ? S3PeerError(404, "NoSuchKey") : nil))
    case "GET": return try S3PeerRange.part(of: try read(key, state), for: request)
    case "HEAD":
      var answer = try read(key, state)
      (answer.length, answer.body) = (answer.body.count, [])
      return answer
    case "PUT" where upload != nil: return try putPart(request, upload!, key, &state)
    case "PUT": return try put(request, key, &state)
    case "POST" where request.query("uploads") != nil: return begin(request, key, &state)
    case "POST" where upload != nil: return try complete(request, upload!, key, &state)
    case "DELETE" where upload != nil:
      _ = try find(upload!, key, state)
      state.uploads[upload!] = nil
      return S3PeerResponse(status: 204)
    case "DELETE":
      state.objects[key] = nil
      return S3PeerResponse(status: 204)
    default: throw S3PeerError(405, "MethodNotAllowed")
    }
  }

  /// Like Amazon's service: refuses fields that do not belong to the operation, and locked objects without a checksum.
  private func checkFields(_ request: S3PeerRequest, isOfBucket: Bool) throws {
    let isUpload = request.query("uploadId") != nil
    let brings = request.method == "PUT"
    let creates = brings && !isUpload || request.method == "POST" && request.query("uploads") != nil
    let mayHaveKey = !isOfBucket && (brings || ["HEAD", "POST", "GET"].contains(request.method))
    for name in request.fields.keys where !creates {
      let isKey = name.hasPrefix("x-amz-server-side-encryption-customer-")
      let isOfCreation =
        name.hasPrefix("x-amz-server-side-encryption") || name.hasPrefix("x-amz-object-lock-")
        || name == "x-amz-storage-class" || name == "x-amz-acl"
      if isOfCreation, !(isKey && mayHaveKey) { throw S3PeerError(400, "InvalidArgument") }
    }
    if options.retainsByDefault, brings, request.fields["content-md5"] == nil {
      guard request.fields["x-amz-sdk-checksum-algorithm"] != nil else {
        throw S3PeerError(400, "InvalidRequest")
      }
    }
  }

  private func find(
    _ id: String, _ key: String, _ state: S3PeerState, or error: S3PeerError? = nil
  ) throws -> S3PeerUpload {
    guard let upload = state.uploads[id], upload.key == key else { throw error ?? S3PeerError(404, "NoSuchUpload") }
    return upload
  }

  private func checkCondition(_ request: S3PeerRequest, _ key: String, _ state: S3PeerState) throws {
    if options.knowsConditions, request.fields["if-none-match"] == "*", state.objects[key] != nil {
      throw S3PeerError(412, "PreconditionFailed")
    }
    if options.knowsConditions, let tag = request.fields["if-match"] {
      guard let object = state.objects[key] else { throw S3PeerError(404, "NoSuchKey") }
      if object.tag != tag { throw S3PeerError(412, "PreconditionFailed") }
    }
  }

  // MARK: Objects

  private func put(_ request: S3PeerRequest, _ key: String, _ state: inout S3PeerState) throws -> S3PeerResponse {
    try checkCondition(request, key, state)
    let object = S3PeerObject(
      bytes: request.body, tag: "\"\(S3Text.md5(request.body))\"", fields: kept(request),
      checksums: checksums(of: request.body))
    state.objects[key] = object
    return S3PeerResponse(status: 200, fields: [("ETag", object.tag)] + told(object.checksums))
  }

  private func read(_ key: String, _ state: S3PeerState) throws -> S3PeerResponse {
    guard let object = state.objects[key] else { throw S3PeerError(404, "NoSuchKey") }
    return S3PeerResponse(
      status: 200,
      fields: [("ETag", object.tag)] + told(object.checksums)
        + object.fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
      body: object.bytes)
  }

  private func kept(_ request: S3PeerRequest) -> [String: String] {
    request.fields.filter { name, _ in
      name == "content-type" || name == "x-amz-storage-class" || name.hasPrefix("x-amz-meta-")
        || name.hasPrefix("x-amz-server-side-encryption")
    }
  }

  private func checksums(of bytes: [UInt8]) -> [String: String] {
    options.knowsChecksums ? ["crc32c": S3Text.base64(Digest.value(of: bytes, .crc32c))] : [:]
  }

  private func told(_ checksums: [String: String]) -> [(String, String)] {
    checksums.map { ("x-amz-checksum-\($0.key)", $0.value) }
  }

  // MARK: Uploads in parts

  private func begin(_ request: S3PeerRequest, _ key: String, _ state: inout S3PeerState) -> S3PeerResponse {
    state.made += 1
    let id = "up/load+\(state.made)=="
    state.uploads[id] = S3PeerUpload(key: key, fields: kept(request))
    state.uploads[id]?.begun = S3PeerAuthenticator(options).now
    let type =
      options.knowsChecksums ? request.fields["x-amz-checksum-type"].map { [("x-amz-checksum-type", $0)] } : nil
    return .xml(
      "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>\(options.bucket)</Bucket>"
        + "<UploadId>\(id)</UploadId></InitiateMultipartUploadResult>", type ?? [])
  }

  private func putPart(
    _ request: S3PeerRequest, _ id: String, _ key: String, _ state: inout S3PeerState
  ) throws -> S3PeerResponse {
    _ = try find(id, key, state)
    guard let number = request.query("partNumber").flatMap({ Int($0) }), 1...10_000 ~= number else {
      throw S3PeerError(400, "InvalidArgument")
    }
    let part = S3PeerUpload.Part(
      bytes: request.body, tag: "\"\(S3Text.md5(request.body))\"", checksums: checksums(of: request.body))
    state.uploads[id]!.parts[number] = part
    return S3PeerResponse(status: 200, fields: [("ETag", part.tag)] + told(part.checksums))
  }

  private func listParts(_ request: S3PeerRequest, _ upload: S3PeerUpload) throws -> S3PeerResponse {
    let after = request.query("part-number-marker").flatMap { Int($0) } ?? 0
    let most = min(options.page, request.query("max-parts").flatMap { Int($0) } ?? 1000)
    let rest = upload.parts.keys.sorted().filter { $0 > after }
    let parts = rest.prefix(most).map { number -> String in
      let part = upload.parts[number]!
      let sums = part.checksums.map { "<Checksum\($0.key.uppercased())>\($0.value)</Checksum\($0.key.uppercased())>" }
      return
        "<Part><PartNumber>\(number)</PartNumber><ETag>\(part.tag.replacingOccurrences(of: "\"", with: "&quot;"))</ETag>"
        + "<Size>\(part.bytes.count)</Size>\(sums.joined())</Part>"
    }
    let next = rest.count > most ? "<NextPartNumberMarker>\(rest[most - 1])</NextPartNumberMarker>" : ""
    return .xml(
      "<ListPartsResult><IsTruncated>\(rest.count > most)</IsTruncated>\(next)\(parts.joined())</ListPartsResult>")
  }

  private func listUploads(_ request: S3PeerRequest, _ state: S3PeerState) -> S3PeerResponse {
    let prefix = request.query("prefix") ?? ""
    let most = min(options.page, request.query("max-uploads").flatMap { Int($0) } ?? 1000)
    let after = (request.query("key-marker") ?? "", request.query("upload-id-marker") ?? "")
    let all = state.uploads.map { ($0.value.key, $0.key) }.filter { $0.0.hasPrefix(prefix) && $0 > after }.sorted {
      $0 < $1
    }
    let encodes = request.query("encoding-type") == "url"
    let tellsEncoding = encodes && !options.isLikeCeph
    let uploads = all.prefix(most).map { key, id in
      "<Upload><Key>\(encodes ? HTTPURL.encode(key.utf8) : S3Text.escaped(key))</Key><UploadId>\(id)</UploadId>"
        + "<Initiated>\(S3Text.date(state.uploads[id]!.begun))</Initiated></Upload>"
    }
    let last = all.prefix(most).last
    let next =
      all.count > most
      ? "<NextKeyMarker>\(tellsEncoding ? HTTPURL.encode(last!.0.utf8) : S3Text.escaped(last!.0))</NextKeyMarker>"
        + "<NextUploadIdMarker>\(last!.1)</NextUploadIdMarker>" : ""
    let encoding = tellsEncoding ? "<EncodingType>url</EncodingType>" : ""
    return .xml(
      "<ListMultipartUploadsResult>\(encoding)<IsTruncated>\(all.count > most)</IsTruncated>"
        + "\(next)\(uploads.joined())</ListMultipartUploadsResult>")
  }

  private func complete(
    _ request: S3PeerRequest, _ id: String, _ key: String, _ state: inout S3PeerState
  ) throws -> S3PeerResponse {
    let upload = try find(id, key, state, or: options.isLikeCeph ? S3PeerError(500, "InternalError") : nil)
    try checkCondition(request, key, state)
    let text = String(decoding: request.body, as: UTF8.self)
    let named = S3Text.elements("Part", in: text)
    if named.isEmpty { throw S3PeerError(400, "MalformedXML") }
    var (bytes, tags, before): ([UInt8], [UInt8], Int) = ([], [], 0)
    for (index, element) in named.enumerated() {
      guard let number = S3Text.elements("PartNumber", in: element).first.flatMap({ Int($0) }) else {
        throw S3PeerError(400, "MalformedXML")
      }
      if number <= before { throw S3PeerError(400, "InvalidPartOrder") }
      before = number
      let tag = S3Text.elements("ETag", in: element).first?.replacingOccurrences(of: "&quot;", with: "\"")
      guard let part = upload.parts[number], part.tag == tag else { throw S3PeerError(400, "InvalidPart") }
      if let sum = S3Text.elements("ChecksumCRC32C", in: element).first, sum != part.checksums["crc32c"] {
        throw S3PeerError(400, "InvalidPart")
      }
      if index < named.count - 1, part.bytes.count < options.smallestPart { throw S3PeerError(400, "EntityTooSmall") }
      bytes += part.bytes
      tags += Digest.value(of: part.bytes, .md5)
    }
    if let size = request.fields["x-amz-mp-object-size"], Int(size) != bytes.count {
      throw S3PeerError(400, "InvalidRequest")
    }
    let sums = checksums(of: bytes)
    if let sum = request.fields["x-amz-checksum-crc32c"], options.knowsChecksums, sum != sums["crc32c"] {
      throw S3PeerError(400, "BadDigest")
    }
    let object = S3PeerObject(
      bytes: bytes, tag: "\"\(S3Text.md5(tags))-\(named.count)\"", fields: upload.fields, checksums: sums)
    state.objects[key] = object
    if let text = options.completionText { return .xml(text) }
    state.uploads[id] = nil
    let tag = options.isLikeCeph ? "" : object.tag.replacingOccurrences(of: "\"", with: "&quot;")
    return .xml("<CompleteMultipartUploadResult><ETag>\(tag)</ETag></CompleteMultipartUploadResult>")
  }
}

enum S3Text {
  static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
  static func date(_ seconds: Int64) -> String {
    Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
  }
  static func md5(_ bytes: [UInt8]) -> String { Digest.hex(of: bytes, .md5) }

  /// Escapes text for an XML element.
  static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
  }

  /// The contents of all elements with this name, which must not be nested.
  static func elements(_ name: String, in text: String) -> [String] {
    text.components(separatedBy: "<\(name)>").dropFirst().map { $0.components(separatedBy: "</\(name)>")[0] }
  }
}
