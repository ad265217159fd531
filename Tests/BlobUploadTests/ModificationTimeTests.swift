import BlobHTTP
import Blobs
import Testing

@testable import BlobUpload

/// Tests how each protocol sends the modification time of a file.
struct ModificationTimeTests {
  private func target(_ modified: Int64?, at endpoint: HTTPURL = host) -> UploadTarget {
    var target = UploadTarget(
      endpoint: endpoint, url: endpoint.appending(pathBytes: "a.jpg".utf8), path: "a.jpg", length: 3)
    target.modified = modified
    return target
  }

  /// The requests that create an upload of three bytes.
  private func requests(
    _ uploadProtocol: any UploadProtocol, _ modified: Int64?, _ answer: @escaping Script.Answer
  ) async throws -> [HTTPRequest] {
    let script = Script(answer)
    let part = Part(number: 1, start: 0, length: 3, isLast: true)
    let body = BlobSlice(DataSource([1, 2, 3]), length: 3)
    let context = UploadContext(transport: script, endpoint: host, traits: uploadProtocol.traits)
    context.putAnswers.trust(folderOf: host)
    _ = try await uploadProtocol.create(target(modified), first: FirstPart(part, body), context)
    return script.requests
  }

  private static let time: Int64 = 1_700_000_000_250_000_000

  @Test(
    arguments: [
      (0, "0"), (1, "0.000000001"), (1_000_000_000, "1"), (1_700_000_000_250_000_000, "1700000000.25"),
      (-1, "-0.000000001"), (-500_000_000, "-0.5"), (-1_000_000_000, "-1"), (-1_500_000_000, "-1.5"),
      (.max, "9223372036.854775807"), (.min, "-9223372036.854775808"),
    ] as [(Int64, String)])
  func aModificationTimeIsWrittenInDecimalSeconds(_ nanoseconds: Int64, _ text: String) {
    #expect(ModificationTime(nanoseconds: nanoseconds).text == text)
  }

  @Test func putAndResumableUploadsHaveAField() async throws {
    let put = try await requests(PlainPut(), Self.time) { _, _ throws(TransportError) in .status(201) }
    #expect(put.map { $0.headers["X-OC-MTime"] } == ["1700000000.25"])
    let resumable = try await requests(IETFResumable(), Self.time) { _, _ throws(TransportError) in
      .status(201, ["Upload-Complete": "?1"])
    }
    #expect(resumable.map { $0.headers["X-OC-MTime"] } == ["1700000000.25"])
    let untold = try await requests(PlainPut(), nil) { _, _ throws(TransportError) in .status(201) }
    #expect(untold.map { $0.headers["X-OC-MTime"] } == [nil])
  }

  @Test func tusHasItInItsMetadata() {
    var target = target(Self.time)
    #expect(TusMetadata.value(of: target).hasSuffix(",mtime \(base64("1700000000.25".utf8))"))
    // Metadata given by name takes precedence.
    target.metadata["mtime"] = "7"
    #expect(TusMetadata.value(of: target).hasSuffix(",mtime \(base64("7".utf8))"))
    target.metadata = [:]
    target.modified = nil
    #expect(!TusMetadata.value(of: target).contains("mtime"))
  }

  /// Nextcloud accepts whole seconds, and refuses a file from the first day of 1970 or earlier.
  @Test(
    arguments: [
      (time, "1700000000"), (86_401_000_000_000, "86401"), (86_400_999_999_999, nil), (0, nil), (-time, nil),
    ] as [(Int64, String?)])
  func webDAVHasWholeSeconds(_ modified: Int64, _ seconds: String?) async throws {
    // The name is free at first, and has the file afterwards.
    let answer: Script.Answer = { number, request throws(TransportError) in
      if request.method != "HEAD" { return .status(201) }
      return number == 0 ? .status(404) : .status(200, ["Content-Length": "3"])
    }
    let requests = try await requests(WebDAV(), modified, answer)
    #expect(requests.filter { $0.method == "PUT" }.map { $0.headers["X-OC-MTime"] } == [seconds])

    // For chunks, the time is sent with the request that joins them, also in a later run.
    let script = Script(answer)
    let cloud = HTTPURL("http://media.example/remote.php/dav/files/me/")!
    let session = try #require(NextcloudChunks(target(modified, at: cloud))).session
    // The file is queried afterwards, and this script has none.
    _ = try? await WebDAV().complete(
      session, [], UploadContext(transport: script, endpoint: cloud, traits: WebDAV().traits))
    #expect(script.methods.first == "MOVE" && script.requests[0].headers["X-OC-MTime"] == seconds)
  }

  @Test func s3HasItAsRcloneDoesAndSigned() {
    let signer = S3Signer(S3SignatureTests.credentials, region: "us-east-1")
    var uploadProtocol = S3Multipart(bucketPath: "/", signer: signer)
    var request = uploadProtocol.put(target(Self.time))
    signer.sign(&request)
    #expect(request.headers["x-amz-meta-mtime"] == "1700000000.25")
    #expect(request.headers["Authorization"]?.contains("x-amz-meta-mtime") == true)
    uploadProtocol.options.metadata["mtime"] = "7"
    let asked = uploadProtocol.put(target(Self.time)).headers.fields.filter { $0.name == "x-amz-meta-mtime" }
    #expect(asked.map(\.value) == ["7"])
  }

  /// Uses the public method of the library, with the time from the file itself.
  @Test func theModificationTimeOfAFileIsSent() async throws {
    let source = TimedSource(modified: Self.time)
    let script = Script(.status(201))
    _ = try await uploader(PlainPut(), script).upload(source, as: "a.jpg")
    #expect(script.requests.map { $0.headers["X-OC-MTime"] } == ["1700000000.25"])
  }
}

/// Three bytes with a modification time.
private struct TimedSource: BlobSource {
  let modified: Int64?
  private let bytes = DataSource([1, 2, 3])
  var access: BlobAccess { .random }

  init(modified: Int64?) { self.modified = modified }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: 3, modified: modified) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try bytes.open(at: offset, cancel)
  }
}
