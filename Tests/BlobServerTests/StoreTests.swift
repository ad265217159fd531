import BlobServer
import BlobTesting
import Testing

struct StoreTests {
  @Test(arguments: StoreFixture.all, StoreCheck.all)
  func conforms(_ fixture: StoreFixture, _ check: StoreCheck) async throws { try await check.run(fixture) }
}

extension StoreFixture {
  static let all = [
    StoreFixture("FileStore") {
      let folder = try TestFolder()
      return { try FileStore(folder.path, expire: $0, maxTotal: $1) }
    }
  ]
}
