import BlobClient
import BlobCrypto
import BlobHTTP
import BlobServer
import BlobServerS3
import BlobUpload
import Blobs
import Synchronization
import TestSupport
import Testing

/// A server that stores in a bucket, at a strict S3 server in this process.
struct BucketServerTests {
  /// The lengths of a file that is sent with one request, and of one that is sent in parts.
  private static let lengths = [3000, (6 << 20) + 1]

  /// A bucket whose server runs `meanwhile` once, before it handles the first request that `isWanted` accepts, and refuses
  /// the ones that `refuse` gives a status for.
  private static func bucket(
    _ isWanted: @escaping @Sendable (S3PeerRequest) -> Bool = { _ in false },
    refuse: @escaping @Sendable (S3PeerRequest) -> (status: Int, code: String)? = { _ in nil },
    meanwhile: @escaping @Sendable (inout S3PeerState) -> Void = { _ in }
  ) -> S3Peer {
    struct Reference { weak var peer: S3Peer? }
    let reference = Mutex(Reference())
    let isDone = Atomic(false)
    var options = S3Peer.Options()
    options.refuse = { _, request in
      if isWanted(request), !isDone.exchange(true, ordering: .relaxed) {
        reference.withLock { $0.peer }?.change(meanwhile)
      }
      return refuse(request)
    }
    let bucket = S3Peer(options)
    reference.withLock { $0.peer = bucket }
    return bucket
  }

  /// Whether the request makes an object.
  private static func makesObject(_ request: S3PeerRequest) -> Bool {
    let isPart = request.query("partNumber") != nil
    return request.method == "PUT" && !isPart
      || request.method == "POST" && request.query("uploadId") != nil
  }

  @Test(arguments: lengths) func ifMatchHoldsUntilTheObjectIsMade(_ length: Int) throws {
    let theirs = Array("of another client".utf8)
    let peer = Self.bucket(
      { Self.makesObject($0) && $0.fields["if-match"] != nil },
      meanwhile: { state in
        state.objects["in/a.jpg"] = S3PeerObject(bytes: theirs, tag: "\"theirs\"")
      })
    let server = try TestServer(in: peer)
    let first = try server.ask("PUT", "/a.jpg", body: [1])
    #expect(first.status == 201)
    let second = try server.ask(
      "PUT", "/a.jpg", [("If-Match", try #require(first["ETag"]))], body: pattern(length))
    #expect(second.status == 412, "\(second.text)")
    #expect(peer.objects["in/a.jpg"]?.bytes == theirs)
    #expect(try eventually { peer.uploads.isEmpty })
  }

  /// `If-Match: *` is the permission to replace what was there when the request began.
  @Test(arguments: lengths) func aFileThatHasComeMeanwhileIsNotReplaced(_ length: Int) throws {
    let theirs = Array("of another client".utf8)
    let peer = Self.bucket(
      Self.makesObject,
      meanwhile: { state in
        state.objects["in/a.jpg"] = S3PeerObject(bytes: theirs, tag: "\"theirs\"")
      })
    peer.change { $0.objects["in/a.jpg"] = S3PeerObject(bytes: [1], tag: "\"before\"") }
    let server = try TestServer(in: peer)
    let answer = try server.ask("PUT", "/a.jpg", [("If-Match", "*")], body: pattern(length))
    #expect(
      answer.status == 409 && answer.text.contains("after this one began"),
      "\(answer.status) \(answer.text)")
    #expect(peer.objects["in/a.jpg"]?.bytes == theirs)
    let again = try server.ask("PUT", "/a.jpg", [("If-Match", "*")], body: pattern(length))
    #expect(again.status == 204 && peer.objects["in/a.jpg"]?.bytes == pattern(length))
  }

  /// The object is gone when its successor is made, which a server answers with 404.
  @Test(arguments: lengths) func aFileThatIsDeletedMeanwhileIsStoredAnew(_ length: Int) throws {
    let peer = Self.bucket(Self.makesObject, meanwhile: { $0.objects["in/a.jpg"] = nil })
    peer.change { $0.objects["in/a.jpg"] = S3PeerObject(bytes: [1], tag: "\"before\"") }
    let server = try TestServer(in: peer)
    let answer = try server.ask("PUT", "/a.jpg", [("If-Match", "*")], body: pattern(length))
    #expect(answer.status == 201, "\(answer.text)")
    #expect(peer.objects["in/a.jpg"]?.bytes == pattern(length))
  }

  /// Some servers answer 501 to `If-Match` of a request that makes an object.
  @Test(arguments: lengths) func aBucketWithoutConditionsIsAskedBefore(_ length: Int) throws {
    let peer = Self.bucket(refuse: { request in
      Self.makesObject(request) && request.fields["if-match"] != nil ? (501, "NotImplemented") : nil
    })
    let server = try TestServer(in: peer)
    let first = try server.ask("PUT", "/a.jpg", body: [1])
    let match = ("If-Match", try #require(first["ETag"]))
    #expect(try server.ask("PUT", "/a.jpg", [match], body: pattern(length)).status == 204)
    #expect(peer.objects["in/a.jpg"]?.bytes == pattern(length))
    #expect(try server.ask("PUT", "/a.jpg", [match], body: [2]).status == 412)
  }

  @Test(arguments: lengths, ["put", "tus"]) func theTimeOfAFileIsKept(_ length: Int, _ way: String)
    throws
  {
    let peer = S3Peer()
    let server = try TestServer(in: peer)
    let bytes = pattern(length)
    if way == "put" {
      let answer = try server.ask("PUT", "/a.jpg", [("X-OC-MTime", "1700000000.25")], body: bytes)
      #expect(answer.status == 201 && answer["X-OC-MTime"] == "accepted")
    } else {
      let upload = try server.create(
        "a.jpg", length: length, metadata: ",mtime \(base64("1700000000.25"))")
      #expect(try server.patch(upload, at: 0, bytes).status == 204)
    }
    #expect(peer.objects["in/a.jpg"]?.fields["x-amz-meta-mtime"] == "1700000000.25")
    for method in ["GET", "HEAD"] {
      #expect(try server.ask(method, "/a.jpg")["Last-Modified"] == "Tue, 14 Nov 2023 22:13:20 GMT")
    }
    let again = try server.ask("PUT", "/a.jpg", [("X-OC-MTime", "1600000000")], body: bytes)
    #expect(
      again["Upload-Outcome"] == "unchanged" && again["X-OC-MTime"] == nil,
      "the object keeps its time")
  }

  @Test func theLimitForAllFilesCountsWhatIsInTheBucket() throws {
    let peer = S3Peer()
    peer.change { state in
      state.objects["in/deep/er/x"] = S3PeerObject(bytes: pattern(600), tag: "\"x\"")
      state.objects["elsewhere"] = S3PeerObject(bytes: pattern(5000), tag: "\"y\"")
      state.objects["in/.fullbore/old.tail"] = S3PeerObject(bytes: pattern(5000), tag: "\"z\"")
    }
    let server = try TestServer(in: peer, maxTotal: 1000) { $0.allowsDelete = true }
    #expect(try server.ask("PUT", "/a", body: pattern(1001)).status == 413)
    #expect(try server.ask("PUT", "/a", body: pattern(401)).status == 507)
    #expect(try server.ask("PUT", "/a", body: pattern(300)).status == 201)
    let upload = try server.create("b", length: 100)
    #expect(try server.ask("PUT", "/c", body: pattern(1)).status == 507)
    #expect(try server.ask("DELETE", upload, [tus]).status == 204)
    #expect(try server.ask("PUT", "/c", body: pattern(100)).status == 201)
    // The old object counts until the new bytes have its name.
    #expect(try server.ask("DELETE", "/c").status == 204)
    #expect(try server.ask("PUT", "/a", [("If-Match", "*")], body: pattern(90)).status == 204)
    #expect(try server.ask("PUT", "/d", body: pattern(310)).status == 201)
    #expect(try server.ask("PUT", "/e", body: [1]).status == 507)
  }

  @Test func aServerThatOnlyReceivesConcealsWhatTheBucketHas() throws {
    let peer = S3Peer()
    peer.change {
      $0.objects["in/k.txt"] = S3PeerObject(bytes: Array("thirteen byte".utf8), tag: "\"k\"")
    }
    let server = try TestServer(in: peer) { $0.reading = .nothing }
    #expect(try server.ask("GET", "/k.txt").status == 403)
    #expect(try server.ask("GET", "/").status == 403)
    for body in [[7, 7, 7], Array("other content".utf8)] {
      let taken = try server.ask("PUT", "/k.txt", body: body)
      #expect(
        taken.status == 409 && !taken.text.contains("13") && taken["ETag"] == nil, "\(taken.text)")
    }
    let same = try server.ask("PUT", "/k.txt", body: Array("thirteen byte".utf8))
    #expect(
      same.status == 204 && same["ETag"] == nil && same["Upload-Outcome"] == "unchanged",
      "\(same.text)")
    #expect(try server.ask("PUT", "/new", body: [1]).status == 201)
  }

  @Test func folderListsHaveWhatTheBucketHas() throws {
    let peer = S3Peer()
    for name in ["in/b.txt", "in/2026/x.jpg", "in/2026/y/z.jpg", "in/.fullbore/a.tail", "other"] {
      peer.change { $0.objects[name] = S3PeerObject(bytes: pattern(70), tag: "\"\(name)\"") }
    }
    let server = try TestServer(in: peer)
    let json = [("Accept", "application/json")]
    let root = try server.ask("GET", "/", json).text
    #expect(root.contains("\"b.txt\"") && root.contains("\"2026\""), "\(root)")
    #expect(!root.contains("fullbore") && !root.contains("other"), "\(root)")
    let folder = try server.ask("GET", "/2026/", json).text
    #expect(
      folder.contains("\"x.jpg\"") && folder.contains("\"y\"") && folder.contains("\"size\":70"),
      "\(folder)")
    #expect(folder.contains("\"archive\":null"), "\(folder)")
    #expect(try server.ask("GET", "/nothing/", json).status == 404)
    #expect(try server.ask("GET", "/2026/?archive=zip").status == 501)
  }

  /// The preview is in the first bytes of the picture.
  @Test func thumbnailsComeFromTheBucket() throws {
    let peer = S3Peer()
    peer.change { $0.objects["in/a.jpg"] = S3PeerObject(bytes: pattern(300_000), tag: "\"a\"") }
    let server = try TestServer(in: peer) { $0.thumbnail = { Array($0.prefix(100)) } }
    let answer = try server.ask("GET", "/a.jpg?thumbnail")
    #expect(
      answer.status == 200 && answer.body == Array(pattern(300_000).prefix(100)), "\(answer.text)")
  }

  @Test func theMoreUploadsThereAreTheLessMemoryHasEach() {
    let shares = MemoryShares(total: 1000, within: 10...400)
    var taken = [shares.take()]
    #expect(taken[0].size == 400)
    taken += (0..<9).map { _ in shares.take() }
    #expect(taken[0].size == 100)
    taken += (0..<990).map { _ in shares.take() }
    #expect(taken[0].size == 10)
    taken.removeLast(995)
    #expect(taken[0].size == 200)
  }

  /// The server was killed after the object was made, and before that was noted: the upload counts as published.
  @Test func aCompletionThatWasNotNotedIsFound() throws {
    let peer = S3Peer()
    let server = try TestServer(in: peer)
    let first = try server.ask("PUT", "/a.jpg", body: [1])
    let bytes = pattern(6 << 20)
    let version = ("Upload-Draft-Interop-Version", "8")
    let client = try server.client()
    let head = [version, ("Upload-Complete", "?0"), ("If-Match", try #require(first["ETag"]))]
    var created = try client.ask("PUT", "/a.jpg", head, body: bytes)
    let upload = try #require(created["Location"])
    while created.status == 104 { created = try client.answer() }
    #expect(first.status == 201 && peer.uploads.count == 1)
    // The last byte is a second part, and the two have become the object already.
    peer.change { state in
      let whole = bytes + [9]
      let tags = Digest.value(of: bytes, .md5) + Digest.value(of: [9], .md5)
      state.objects["in/a.jpg"] = S3PeerObject(
        bytes: whole, tag: "\"\(Digest.hex(of: tags, .md5))-2\"")
    }
    let rest = [
      version, ("Upload-Complete", "?1"), ("Upload-Offset", "\(bytes.count)"),
      ("Content-Type", "application/partial-upload"),
    ]
    let end = try server.ask("PATCH", upload, rest, body: [9])
    #expect(end.status == 200, "\(end.status) \(end.text)")
    #expect(peer.uploads.isEmpty && peer.objects["in/a.jpg"]?.bytes.count == bytes.count + 1)
  }

  /// Some servers take no control characters in names.
  @Test(arguments: [3, 9 << 20]) func aNameThatTheBucketRefusesIsRefused(_ count: Int) throws {
    var options = S3Peer.Options()
    options.refuse = { _, request in request.path.contains("%0A") ? (404, "NotFound") : nil }
    let peer = S3Peer(options)
    let server = try TestServer(in: peer)
    let answer = try server.ask("PUT", "/a%0Ab", body: pattern(count))
    #expect(answer.status == 400 && answer.text.contains("takes no such name"), "\(answer.status) \(answer.text)")
    #expect(try eventually { server.folder.kept.isEmpty }, "\(server.folder.kept)")
    #expect(peer.objects.isEmpty && peer.uploads.isEmpty)
  }
}

extension TestServer {
  /// A server that stores in `in/` of a bucket, and its records in a temporary folder.
  convenience init(
    in peer: S3Peer, maxTotal: Int64? = nil, _ change: (inout ServerOptions) -> Void = { _ in }
  ) throws {
    let folder = try TestFolder()
    var options = ServerOptions(folder: folder.path, port: 0)
    change(&options)
    let store = try peer.store(
      in: folder, expire: options.expire, maxTotal: maxTotal, conceals: options.reading == .nothing)
    self.init(folder, try Server(options, store))
  }
}

extension S3Peer {
  /// A store in `in/` of the bucket.
  func store(
    in folder: TestFolder, expire: Duration, maxTotal: Int64?, conceals: Bool = false
  ) throws(ServerError) -> S3Store {
    try store(FolderRecords(in: folder.path), expire: expire, maxTotal: maxTotal, conceals: conceals)
  }

  func store(
    _ records: any RecordKeeping, expire: Duration, maxTotal: Int64? = nil, conceals: Bool = false,
    probing: Duration = .seconds(10), at destination: UploadDestination? = nil
  ) throws(ServerError) -> S3Store {
    try S3Store(
      destination ?? self.destination(), over: SocketTransport(.init(connections: 64, adapts: false)), records,
      expire: expire, maxTotal: maxTotal, conceals: conceals, probing: probing)
  }

  /// The folder `in/` of the bucket. `host`: of its URL.
  func destination(host: String = "127.0.0.1") -> UploadDestination {
    let s3 = S3Multipart(
      bucketPath: "/\(options.bucket)/", signer: S3Signer(options.credentials, region: options.region))
    return UploadDestination(
      endpoint: HTTPURL("http://\(host):\(port)/\(options.bucket)/in/")!, uploadProtocol: s3, limits: PartLimits())
  }
}
