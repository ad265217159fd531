@testable import BlobServer
import BlobTesting
import Blobs
import Platform
import Testing

struct StoreTests {
  @Test(arguments: StoreFixture.all, StoreCheck.all)
  func conforms(_ fixture: StoreFixture, _ check: StoreCheck) async throws { try await check.run(fixture) }

  /// A read error is not reported as a difference, because the client would then be advised to replace the file.
  @Test func aFileThatCannotBeReadHasNoOtherBytes() throws {
    let folder = try TestFolder()
    let store = try FileStore(folder.path, expire: .seconds(60))
    defer { store.close() }
    let reception = try #require(try store.begin(length: 3) as? FileReception)
    defer { reception.discard() }
    try [1, 2, 3 as UInt8].withUnsafeBytes { try reception.append(.bytes($0)) }
    // Reading a folder, or a file that is open only for writing, fails like reading from a defective disk.
    for (place, flags) in [("/", O_RDONLY), ("/dev/null", O_WRONLY)] {
      let other = Descriptor(place.withCString { open($0, flags) })
      let error = #expect(throws: ServerError.self) { try reception.hasSameBytes(as: other, Cancellation()) }
      #expect(error?.status == 500 && error?.message.contains("read the file") == true, "\(place): \(error as Any)")
    }
    folder.write("shorter", [1, 2])
    let shorter = Descriptor(folder.path.appending("shorter").withCString { open($0, O_RDONLY) })
    #expect(try !reception.hasSameBytes(as: shorter, Cancellation()))
  }
}

extension StoreFixture {
  static let all = [
    StoreFixture("FileStore") {
      let folder = try TestFolder()
      return { try FileStore(folder.path, expire: $0, maxTotal: $1) }
    }
  ]
}
