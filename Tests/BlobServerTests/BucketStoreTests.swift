import BlobServer
import BlobTesting
import Foundation
import TestSupport
import Testing

/// The store in a bucket, at a strict S3 server in this process.
struct BucketStoreTests {
  @Test(arguments: StoreCheck.all)
  func conforms(_ check: StoreCheck) async throws { try await check.run(.bucket) }

  #if os(Linux)
    /// A server that starts finds what an earlier one has left, and reads each record once.
    @Test func eachRecordIsReadOnceAtTheStart() throws {
      let (peer, folder) = (S3Peer(), try TestFolder())
      let size = 20_000
      do {
        let records = try FolderRecords(in: folder.path)
        defer { records.close() }
        for _ in 0..<50 {
          let path = try ServedPath("a.jpg".utf8)
          let record = UploadRecord(
            UploadID.random(), target: path, existing: .keep, length: 9, metadata: "x \(base64(pattern(size)))")
          _ = try records.save(record, under: nil)
        }
      }
      let records = try FolderRecords(in: folder.path)
      let before = try bytesRead()
      let store = try peer.store(records, expire: .seconds(3600))
      #expect(try bytesRead() - before < 50 * size * 3 / 2)
      #expect(store.unfinished == 50)
      store.close()
    }

    /// The bytes that this thread has read from files.
    private func bytesRead() throws -> Int {
      let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
      let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("rchar: ") })
      return try #require(Int(line.dropFirst("rchar: ".count)))
    }
  #endif
}

extension StoreFixture {
  static let bucket = StoreFixture("S3Store", lacks: [.joining, .receptionDigests, .folders, .openVersions, .anyNames])
  {
    let (peer, folder) = (S3Peer(), try TestFolder())
    return { expire, maxTotal in try peer.store(in: folder, expire: expire, maxTotal: maxTotal) }
  }
}
