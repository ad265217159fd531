import Foundation
import Testing

// Histories that files bring with them.
extension EndToEnd.HashListTests {
  /// Makes a folder with a photo and a history of its own. Returns its path with a slash.
  private func makeCard(_ name: String, _ url: String) async throws -> String {
    try scratch.photo("\(name)/\(name).JPG", seed: UInt64(name.utf8.count))
    let path = scratch.path("\(name)/")
    try await push("--mhl", "--mhl-at", "source", path, "\(url)made/\(name)/")
    return path
  }

  private func pushFails(_ arguments: [String], _ cards: [String]) async throws {
    let command = try Command(Tool.fullbore, ["push", "--mhl"] + arguments, in: scratch)
    #expect(try await command.wait() == .exited(1), "\(command.output)\(command.errors)")
    for card in cards {
      #expect(command.errors.contains("\(card)ascmhl/: 1 hash list not at the destination"), "\(command.errors)")
    }
    #expect(command.errors.components(separatedBy: "not at the destination").count == cards.count + 1)
  }

  /// A folder at the destination has one history, which continues one that came with files.
  @Test func listsThatDoNotArriveAreNamed() async throws {
    let server = try await ServeProcess.start(in: scratch)
    let (one, other) = (try await makeCard("one", server.url), try await makeCard("other", server.url))
    try await pushFails([one, other, "\(server.url)both/"], [one, other])
    try await push("--mhl", one, "\(server.url)day/")
    try await push("--mhl", one, "\(server.url)day/")
    #expect(try lists("\(server.folder.path)/day").count == 3)
    // With the same files in the same second, the new list would have the bytes of the one at the source.
    try scratch.photo("other/later.JPG", seed: 6)
    try await pushFails([other, "\(server.url)day/"], [other])
    // A source without a history does not hinder that of another one.
    try scratch.photo("plain/plain.JPG", seed: 77)
    try await push("--mhl", scratch.path("plain/"), one, "\(server.url)mixed/")
    #expect(try lists("\(server.folder.path)/mixed").count == 2)
  }

  /// The lists at both places are the same, also where the folders have other names.
  @Test func aHistoryThatIsKeptAtBothPlacesIsOne() async throws {
    let server = try await ServeProcess.start(in: scratch)
    try scratch.photo("one/one.JPG", seed: 3)
    for _ in 1...2 { try await push("--mhl", "--mhl-at", "both", scratch.path("one/"), "\(server.url)day/") }
    try await push("--mhl", scratch.path("one/"), "\(server.url)day/")
    #expect(try lists("\(server.folder.path)/day").count == 3)
  }

  @Test func aHistoryThatContinuesIsNoDifference() async throws {
    let server = try await ServeProcess.start(in: scratch)
    let card = try await makeCard("one", server.url)
    try await push("--mhl", card, "\(server.url)day/")
    let (same, check) = try await fullbore("check", card, "\(server.url)day/", in: scratch)
    #expect(same == .exited(0) && check.output.contains("All 3 files are at"), "\(check.output)\(check.errors)")
    // The source gets another second list than the destination has.
    try scratch.photo("one/later.JPG", seed: 5)
    try await push("--mhl", "--mhl-at", "source", card, "\(server.url)made/one/")
    let (different, other) = try await fullbore("check", card, "\(server.url)day/", in: scratch)
    #expect(
      different == .exited(1) && other.errors.contains("ascmhl/ascmhl_chain.xml: different at the destination"),
      "\(other.output)\(other.errors)")
  }
}
