import Blobs
import Testing

@testable import fullbore

@Suite struct PushWalkTests {
  let scratch = Scratch()

  private func walk(_ sources: BytePath...) throws -> PushWalk {
    let options = try PushOptions(Arguments(["--quiet"] + sources + ["http://host/"], PushCommand.declaration))
    let counters = PushCounters()
    return PushWalk(options, pushReport(options.output, counters), counters)
  }

  /// Checks the estimate that decides how many connections to open before the first file is sent.
  @Test func aShortLookCountsSome() async throws {
    let single = scratch.file("single")
    for number in 1...3 { scratch.file(BytePath("few/\(number)/photo")) }
    scratch.file("few/.hidden")
    for number in 1...100 { scratch.file(BytePath("many/\(number)")) }
    let (few, many) = (scratch.path.appending("few"), scratch.path.appending("many"))
    #expect(try await walk(single).lookAhead() == 1)
    #expect(try await walk(few).lookAhead() == 3)
    #expect(try await walk(few, single).lookAhead() == 4)
    #expect(try await walk(few, many).lookAhead() == 64)
    #expect(try await walk("sqlite:f?table=t&column=c").lookAhead() == 64)
  }

  @Test(arguments: [0, 1, 16, 17, 64, 65, 300])
  func lookedAheadFilesComeFirstAndOnce(count: Int) async throws {
    scratch.folder("many")
    for number in 0..<count { scratch.file(BytePath("many/\(1000 + number)")) }
    let walk = try walk(scratch.path.appending("many"))
    #expect(await walk.lookAhead() == min(count, 64))
    var batches: [[FoundSource]] = []
    while let found = await walk.next() { batches.append(found) }
    #expect(batches.joined().map(\.identity.name) == (0..<count).map { BytePath("\(1000 + $0)") })
    // The first byte waits only until these files are claimed.
    #expect(batches.first?.count ?? 0 <= 16)
  }
}
