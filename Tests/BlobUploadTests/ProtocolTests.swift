import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Platform
import Testing

@Suite(.serialized) struct ProtocolTests {
  @Test(arguments: ProtocolFixture.all, ProtocolCheck.all)
  func conforms(_ fixture: ProtocolFixture, _ check: ProtocolCheck) async throws { try await check.run(fixture) }

  @Test(arguments: ProtocolFixture.all) func survivesChaos(_ fixture: ProtocolFixture) async {
    await chaos(fixture, pipes: false)
  }

  @Test(arguments: ProtocolFixture.all.filter(\.takesUnknownLength))
  func survivesChaosOfPipes(_ fixture: ProtocolFixture) async { await chaos(fixture, pipes: true) }

  /// `FULLBORE_SEEDS` is the number of seeds, `FULLBORE_SEED` the first of them, and `FULLBORE_FIXTURES` a list of
  /// prefixes of the names of the fixtures to run.
  private func chaos(_ fixture: ProtocolFixture, pipes: Bool) async {
    if let only = getenv("FULLBORE_FIXTURES").map({ String(cString: $0) }),
      !only.split(separator: ",").contains(where: { fixture.name.hasPrefix($0) })
    {
      return print("\(fixture): not one of FULLBORE_FIXTURES=\(only)")
    }
    let first = number("FULLBORE_SEED") ?? UInt64.random(in: 0..<1 << 32)
    let count = number("FULLBORE_SEEDS") ?? 30
    // The timeout of a request whose bytes were lost; if it is too short, the request is only sent again.
    let limits = SocketTransport.Options(connections: 8, noProgress: .seconds(1), finishing: .seconds(1))
    print("\(fixture): chaos of \(pipes ? "pipes, " : "") \(count) seeds from FULLBORE_SEED=\(first)")
    await withTaskGroup(of: Void.self) { group in
      for lane in 0..<4 as Range<UInt64> {
        group.addTask {
          for seed in stride(from: lane, to: count, by: 4) {
            // The error names the fixture and the seed.
            do {
              try await ProtocolCheck.chaos(seed: first &+ seed, pipes: pipes).run(
                fixture, over: SocketTransport(limits))
            } catch {
              Issue.record(error)
            }
          }
        }
      }
    }
  }
}

private func number(_ name: String) -> UInt64? { getenv(name).flatMap { UInt64(String(cString: $0)) } }
