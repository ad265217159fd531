import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Reading files from a destination that is away for a while.
@Suite struct PatientReadTests {
  private let served: ServedFolder
  private let clock = LeapingClock()
  private let pattern = PatternSource(length: 100_000)

  init() throws { served = try ServedFolder() }

  /// Reads a file that was sent. The requests of these numbers do not reach the server.
  private func read(failing: Range<Int>, retries: Int? = nil) async throws -> [UInt8] {
    let destination = UploadDestination(
      endpoint: served.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    var uploader = Uploader(destination, transport: SocketTransport(), retry: RetryPolicy(retries: retries))
    uploader.clock = clock
    _ = try await uploader.upload(pattern, as: "a.mov")
    let transport = FaultyTransport(SocketTransport()) { number, _ in
      failing.contains(number) ? .before(.connect) : .none
    }
    let source = try await BlobUpload.StoredFiles(uploader, reading: transport).source("a.mov")
    return try await readingSource { cancel, _ throws(BlobError) in
      let reader = try source.open(at: 0, cancel)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      var bytes: [UInt8] = []
      while case let count = try reader.readChecked(into: buffer), count > 0 { bytes += buffer.prefix(count) }
      try reader.finish()
      return bytes
    }
  }

  /// More failures than `RetryPolicy.retries`: at the first byte, and when the version is asked for at the end.
  @Test(arguments: [1, 2]) func aServerThatIsAwayIsWaitedFor(_ first: Int) async throws {
    #expect(try await read(failing: first..<first + 12) == pattern.bytes(count: 100_000))
    #expect(clock.waits.reduce(.zero, +) > .seconds(60), "\(clock.waits)")
  }

  @Test func aGivenNumberOfRetriesIsHeeded() async throws {
    let error = await #expect(throws: UploadError.self) { try await read(failing: 1..<100, retries: 2) }
    #expect(error?.message.contains("(gave up after 3 failures in a row)") == true, "\(error?.message ?? "")")
    #expect(try await read(failing: 1..<3, retries: 2) == pattern.bytes(count: 100_000))
  }
}
