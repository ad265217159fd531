import BlobTesting
import BlockUpload
import Testing

/// Runs the checks for upload protocols on the block protocol, over real sockets.
@Suite(.serialized) struct BlockUploadTests {
  static let fixtures = [fixture("blocks", partSize: nil), fixture("odd blocks", partSize: 700_001)]

  private static func fixture(_ name: String, partSize: Int64?) -> ProtocolFixture {
    let small: Int64 = 128 << 10
    let blocks = BlockUpload(wholeUpTo: small, blockSize: 256 << 10)
    var fixture = ProtocolFixture(
      name, blocks, partSize: partSize, partsAtOnce: 8, wholeUpTo: small, makePeer: { BlockServer() })
    // A small memory makes the upload of a pipe have many parts too.
    fixture.pipeMemory = Int(partSize ?? 256 << 10)
    return fixture
  }

  @Test(arguments: fixtures, ProtocolCheck.all)
  func conforms(_ fixture: ProtocolFixture, _ check: ProtocolCheck) async throws { try await check.run(fixture) }

  @Test(arguments: fixtures, 1...10 as ClosedRange<UInt64>)
  func survivesChaos(_ fixture: ProtocolFixture, _ seed: UInt64) async throws {
    try await ProtocolCheck.chaos(seed: seed).run(fixture)
    try await ProtocolCheck.chaos(seed: seed, pipes: true).run(fixture)
  }
}
