import BlobClient
import BlobServer
import BlobServerS3
import BlobUpload
import Platform
import Synchronization
import TestSupport
import Testing

/// `/healthz` of a server that stores in a bucket.
struct BucketHealthTests {
  /// A bucket whose server refuses the requests for which `refuse` is set.
  private final class Bucket: Sendable {
    let refusal = Mutex<(status: Int, code: String)?>(nil)
    let requests = Atomic(0)
    /// Whether only requests are refused that bring bytes of a file.
    let refusesFilesOnly = Atomic(false)
  }

  private func peer(_ bucket: Bucket) -> S3Peer {
    var options = S3Peer.Options()
    options.refuse = { _, request in
      bucket.requests.add(1, ordering: .relaxed)
      let isProbe = request.query("uploadId") == "fullbore-probe"
      if bucket.refusesFilesOnly.load(ordering: .relaxed), isProbe || request.method != "PUT" { return nil }
      return bucket.refusal.withLock { $0 }
    }
    return S3Peer(options)
  }

  private func server(_ peer: S3Peer, probing: Duration, over folder: TestFolder? = nil) throws -> TestServer {
    let folder = try folder ?? TestFolder()
    let options = ServerOptions(folder: folder.path, port: 0)
    let store = try peer.store(FolderRecords(in: folder.path), expire: options.expire, probing: probing)
    return TestServer(folder, try Server(options, store))
  }

  private func becomes(_ status: Int, _ server: TestServer) throws -> String {
    #expect(try eventually { try server.ask("GET", "/healthz").status == status })
    return try server.ask("GET", "/healthz").text
  }

  /// Nobody sends a file, so that only the probe shows it.
  @Test(arguments: [(403, "AccessDenied"), (404, "NoSuchBucket"), (503, "SlowDown"), (507, "InsufficientStorage")])
  func aBucketThatTakesNothingIsUnwell(_ status: Int, _ code: String) throws {
    let bucket = Bucket()
    let peer = peer(bucket)
    let server = try server(peer, probing: .milliseconds(300))
    #expect(try server.ask("GET", "/healthz").text.hasPrefix("ok"))
    bucket.refusal.withLock { $0 = (status, code) }
    let reason = try becomes(503, server)
    #expect(reason.contains("the bucket") && (reason.contains(code) || reason.contains("\(status)")), "\(reason)")
    #expect(!reason.contains("media") && !reason.contains("127.0.0.1"), "\(reason)")
    bucket.refusal.withLock { $0 = nil }
    #expect(try becomes(200, server).hasPrefix("ok"))
    #expect(peer.objects.isEmpty && peer.uploads.isEmpty)
  }

  @Test func aBucketThatCannotBeReachedIsUnwell() throws {
    let peer = peer(Bucket())
    let server = try server(peer, probing: .milliseconds(300))
    #expect(try server.ask("GET", "/healthz").text.hasPrefix("ok"))
    peer.stop()
    let reason = try becomes(503, server)
    #expect(reason.hasPrefix("the bucket cannot be reached"), "\(reason)")
    #expect(try server.ask("GET", "/metrics").text.contains("\nfullbore_folder_usable 0\n"))
  }

  /// A probe brings no byte, so it does not show that the bucket is full.
  @Test func aRefusedFileCountsForMoreThanAProbe() throws {
    let bucket = Bucket()
    bucket.refusesFilesOnly.store(true, ordering: .relaxed)
    let peer = peer(bucket)
    let server = try server(peer, probing: .milliseconds(100))
    bucket.refusal.withLock { $0 = (507, "InsufficientStorage") }
    for _ in 0..<2 { #expect(try server.ask("PUT", "/a.jpg", body: [1]).status >= 500) }
    _ = try becomes(503, server)
    usleep(1_500_000)
    #expect(try server.ask("GET", "/healthz").status == 503)
    bucket.refusal.withLock { $0 = nil }
    #expect(try server.ask("PUT", "/a.jpg", body: [1]).status == 201)
    #expect(try becomes(200, server).hasPrefix("ok"))
  }

  /// Many requests for `/healthz` are no requests to the bucket.
  @Test func aBucketIsProbedOnceInSomeSeconds() throws {
    let bucket = Bucket()
    let server = try server(peer(bucket), probing: .seconds(60))
    for _ in 0..<200 { #expect(try server.ask("GET", "/healthz").status == 200) }
    #expect(bucket.requests.load(ordering: .relaxed) == 0)
  }

  @Test(.enabled(if: getuid() == 0, "only root can mount")) func aFullDiskOfTheStateIsUnwell() throws {
    let folder = try TestFolder()
    guard folder.path.mount("tmpfs", "tmpfs", options: "size=256k") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { folder.path.unmount() }
    let server = try server(peer(Bucket()), probing: .seconds(60), over: folder)
    #expect(try server.ask("GET", "/healthz").status == 200)
    folder.write("filler", pattern(256 << 10))
    #expect(try becomes(503, server).contains("the disk of the folder for the state is full"))
  }
}
