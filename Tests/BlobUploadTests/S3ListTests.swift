import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Tests lists of parts and of uploads.
@Suite struct S3ListTests: S3Fixture {
  let transport = Self.connections

  @Test(arguments: [true, false]) func listsAreReadPageByPage(_ isLikeCeph: Bool) async throws {
    let peer = peer { options in
      options.isLikeCeph = isLikeCeph
      options.page = 2
      options.smallestPart = 1
    }
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    let uploadProtocol = S3Multipart(
      bucketPath: "/media/", signer: signer, options: .init(wholeUpTo: 0, partSize: 100, smallestPart: 1))
    let context = UploadContext(transport: transport, endpoint: peer.endpoint, traits: uploadProtocol.traits)
    var ids: Set<String> = []
    for name in ["in/100%41", "in/a b", "in/a b", "in/ä&+", "in/c", "out/d"] {
      let target = UploadTarget(
        endpoint: peer.endpoint, url: peer.endpoint.appending(pathBytes: Array(name.utf8)), path: BytePath(name),
        length: 450)
      guard case .parts(_, var session) = try await uploadProtocol.create(target, first: nil, context) else {
        throw CheckFailure("no upload was begun")
      }
      session.partSize = 100
      for part in PartPlan(length: 450, partSize: 100).numbered()! {
        let body = BlobSlice(PatternSource(length: 450), start: part.start, length: part.length)
        _ = try await uploadProtocol.send(part, body, to: session, context)
      }
      guard case .parts(let parts, _) = try await uploadProtocol.held(by: session, context) else {
        throw CheckFailure("no parts are listed")
      }
      #expect(parts.map(\.number) == [1, 2, 3, 4, 5] && parts.map(\.start) == [0, 100, 200, 300, 400])
      #expect(parts.map(\.held) == [100, 100, 100, 100, 50] && parts.allSatisfy { $0.digest != nil })
      ids.insert(session.state["id"]!)
    }
    let orphans = try await uploadProtocol.allOrphans(Array("in/".utf8), at: peer.endpoint, context)
    #expect(
      orphans.map { String(decoding: $0.name, as: UTF8.self) }.sorted() == [
        "in/100%41", "in/a b", "in/a b", "in/c", "in/ä&+",
      ])
    #expect(orphans.allSatisfy { $0.parts == 5 && $0.bytes == 450 && $0.begun ?? 0 > 1_795_302_000 })
    for orphan in orphans { try await uploadProtocol.delete(orphan, context) }
    #expect(peer.uploads.values.map(\.key) == ["out/d"])
  }

  // MARK: Lists of a server's own words

  private func uploadProtocol() -> S3Multipart {
    S3Multipart(
      bucketPath: "/media/",
      signer: S3Signer(S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s"), region: "us-east-1"))
  }

  private func list(_ name: String, _ text: String) -> HTTPResponse {
    HTTPResponse(
      head: HTTPHead(status: 200, headers: ["Content-Type": "application/xml"]),
      body: Array("<\(name)>\(text)</\(name)>".utf8))
  }

  private func context(_ script: Script) -> UploadContext {
    UploadContext(transport: script, endpoint: host, traits: uploadProtocol().traits)
  }

  /// One name with a control character must not make the whole bucket unusable.
  @Test func aBucketIsAskedForEncodedNames() async throws {
    let script = Script { [self] _, request throws(TransportError) in
      let isEncoded = request.url.query?.contains("encoding-type=url") == true
      return list("ListBucketResult", "<Contents><Key>\(isEncoded ? "a%01" : "a<")</Key></Contents>")
    }
    let target = UploadTarget(endpoint: host, url: host, path: "", length: nil)
    _ = try await uploadProtocol().discover(target, context(script))
    let plain = Script(list("ListBucketResult", "<Contents><Key>a\u{1}</Key></Contents>"))
    _ = try await uploadProtocol().discover(target, context(plain))
  }

  /// A name with dots is used unchanged, and not resolved as a path.
  @Test(arguments: ["pre/../../other/x", "pre/a/..", "pre/./z"]) func dotsInNamesAreNoSteps(_ key: String) async throws
  {
    let script = Script { [self] _, request throws(TransportError) in
      if request.method == "DELETE" { return .status(204) }
      if request.url.query?.contains("uploads=") == true {
        return list("ListMultipartUploadsResult", "<Upload><Key>\(key)</Key><UploadId>7</UploadId></Upload>")
      }
      return request.url.path == "/media/\(key)"
        ? list("ListPartsResult", "<Part><PartNumber>1</PartNumber><Size>9</Size><ETag>e</ETag></Part>") : .status(404)
    }
    let found = try await uploadProtocol().allOrphans(Array("pre/".utf8), at: host, context(script))
    #expect(found.map(\.bytes) == [9])
    #expect(script.requests.allSatisfy { $0.url.path == "/media/" || $0.url.path == "/media/\(key)" })
  }

  @Test(arguments: ["", "<NextKeyMarker/>", "<NextUploadIdMarker>9</NextUploadIdMarker>"])
  func aListOfUploadsThatDoesNotSayWhereItGoesOnIsNoWholeList(_ marker: String) async {
    let script = Script(list("ListMultipartUploadsResult", "<IsTruncated>true</IsTruncated>\(marker)"))
    let error = await #expect(throws: UploadError.self) {
      try await uploadProtocol().allOrphans([], at: host, context(script))
    }
    #expect(error?.message.contains("does not say where") == true, "\(error as Any)")
  }

  @Test func aListOfPartsThatDoesNotSayWhereItGoesOnGoesOnAfterItsLast() async throws {
    let script = Script { [self] number, request throws(TransportError) in
      let part = "<Part><PartNumber>\(number + 1)</PartNumber><Size>9</Size><ETag>e</ETag></Part>"
      return list("ListPartsResult", (number < 2 ? "<IsTruncated>true</IsTruncated>" : "") + part)
    }
    guard case .parts(let parts, _) = try await uploadProtocol().held(by: session, context(script)) else {
      throw CheckFailure("no parts are listed")
    }
    #expect(parts.map(\.number) == [1, 2, 3] && script.requests.count == 3)
    let empty = Script(list("ListPartsResult", "<IsTruncated>true</IsTruncated>"))
    await #expect(throws: UploadError.self) { _ = try await uploadProtocol().held(by: session, context(empty)) }
  }

  private let session = UploadSession(state: ["url": "\(host.origin)/media/a", "id": "7"])

  private func part(_ number: Int, _ tag: String = "e") -> String {
    "<Part><PartNumber>\(number)</PartNumber><Size>9</Size><ETag>\(tag)</ETag></Part>"
  }

  /// A part counts once, however often and on whichever pages the server lists it.
  @Test func aPartIsTakenOnce() async throws {
    let long = String(repeating: "e", count: 5000)
    let pages = [
      "<IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>" + part(2) + part(1) + part(2),
      part(1) + part(2) + part(3) + part(4, long) + part(3),
    ]
    let script = Script { [self] number, _ throws(TransportError) in list("ListPartsResult", pages[number]) }
    guard case .parts(let parts, _) = try await uploadProtocol().held(by: session, context(script)) else {
      throw CheckFailure("no parts are listed")
    }
    #expect(parts.map(\.number) == [2, 1, 3])
  }

  @Test func aListOfPartsHasAnEnd() async {
    let script = Script { [self] number, _ throws(TransportError) in
      let marker = "<NextPartNumberMarker>\(number + 1)</NextPartNumberMarker>"
      return list("ListPartsResult", "<IsTruncated>true</IsTruncated>\(marker)\(part(9_999))")
    }
    let error = await #expect(throws: UploadError.self) {
      try await uploadProtocol().held(by: session, context(script))
    }
    #expect(error?.message.contains("does not go on") == true && script.requests.count == 1000, "\(error as Any)")
  }

  /// The uploads of a page can be deallocated before the next page is requested.
  @Test func uploadsAreTakenPageByPage() async throws {
    let script = Script { [self] _, request throws(TransportError) in
      guard let query = request.url.query, query.contains("uploads=") else { return list("ListPartsResult", part(1)) }
      let marker = query.split(separator: "&").first { $0.hasPrefix("key-marker=") }.map { $0.dropFirst(11) } ?? "0"
      let next = Int(marker)! + 1
      let more = next < 3 ? "<IsTruncated>true</IsTruncated><NextKeyMarker>\(next)</NextKeyMarker>" : ""
      return list("ListMultipartUploadsResult", "<Upload><Key>\(next)</Key><UploadId>7</UploadId></Upload>" + more)
    }
    var seen: [String] = []
    try await uploadProtocol().orphans([], at: host, context(script)) {
      (page: [OrphanedUpload]) async throws(UploadError) in
      seen.append("\(page.map { String(decoding: $0.name, as: UTF8.self) }) after \(script.requests.count)")
    }
    #expect(seen == ["[\"1\"] after 2", "[\"2\"] after 4", "[\"3\"] after 6"])
  }
}

extension S3Multipart {
  func allOrphans(_ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext) async throws(UploadError)
    -> [OrphanedUpload]
  {
    var all: [OrphanedUpload] = []
    try await orphans(prefix, at: endpoint, with) { (page: [OrphanedUpload]) async throws(UploadError) in all += page }
    return all
  }
}
