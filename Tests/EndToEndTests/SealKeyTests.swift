import BlobCrypto
import Foundation
import TestSupport
import Testing

extension EndToEnd {
  /// Whoever sees all bytes of a client never sees two contents under one key, nonce and number of a chunk.
  @Suite(.serialized, .enabled(if: Peer.age.isThereOrWanted)) struct SealKeyTests {
    let tests = SealTests()

    enum Change: String, CaseIterable { case nothing, contentAlone, contentAndTime }

    @Test(arguments: Change.allCases, ["tus+", "resumable+"])
    func noKeyIsUsedForTwoContents(_ change: Change, _ dialect: String) async throws {
      let scratch = tests.scratch
      let key = try await tests.makeKey()
      let film = try scratch.file("film.mov", 12 << 20)
      let server = try await ServeProcess.start(in: scratch)
      let relay = RecordingRelay(to: server.port)
      let arguments = [
        "push", "--seal", key.recipient, "--header", "Host: 127.0.0.1:\(server.port)", film,
        "\(dialect)http://127.0.0.1:\(relay.port)/",
      ]
      // The server gets 3 MB. What follows is seen on the way, and lost.
      relay.forward(atMost: 3_000_000)
      let killed = try Command(Tool.fullbore, arguments, in: scratch)
      try await until("more is sent than arrives") { relay.count > 7_000_000 ? true : nil }
      killed.kill(SIGKILL)
      try await killed.wait()
      relay.forward(atMost: .max)
      if change != .nothing {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: film))
        for place in [100_000, 5_000_000, 11_000_000] {
          try file.seek(toOffset: UInt64(place))
          try file.write(contentsOf: Data("other content".utf8))
        }
        try file.close()
        // The size is the same, and so is the time.
        if change == .contentAlone { try scratch.age("film.mov") }
      }
      let again = try Command(Tool.fullbore, arguments, in: scratch)
      #expect(try await again.wait() == .exited(0), "\(again.output)\(again.errors)")
      try await tests.expectOpens("\(server.folder.path)/film.mov.age", to: film, with: key.file)
      #expect(again.output.contains("resumed") == (change == .nothing), "\(again.output)")

      let segments = relay.segments
      var prefixes: [String: [UInt8]] = [:]
      for segment in segments where segment.start == 0 { prefixes[segment.url] = prefix(of: segment.bytes) }
      var seen: [[UInt8]: [RecordingRelay.Segment]] = [:]
      var compared = 0
      for segment in segments {
        let prefix = try #require(prefixes[segment.url], "\(segment.url) from \(segment.start): \(prefixes.keys)")
        for other in seen[prefix] ?? [] {
          let start = max(segment.start, other.start)
          let end = min(segment.start + segment.bytes.count, other.start + other.bytes.count)
          if start >= end { continue }
          let mine = segment.bytes[(start - segment.start)..<(end - segment.start)]
          let theirs = other.bytes[(start - other.start)..<(end - other.start)]
          #expect(mine.elementsEqual(theirs), "bytes \(start)..<\(end) differ under one key")
          compared += end - start
        }
        seen[prefix, default: []].append(segment)
      }
      #expect(seen.count == (change == .nothing ? 1 : 2))
      if change == .nothing { #expect(compared > 1_000_000, "nothing was sent twice") }
    }

    /// The header and the nonce of a file of age.
    private func prefix(of bytes: [UInt8]) -> [UInt8] {
      guard let mark = bytes.firstRange(of: Array("\n--- ".utf8)) else { return [] }
      let end = bytes[mark.upperBound...].firstIndex(of: UInt8(ascii: "\n")) ?? mark.upperBound
      return Array(bytes.prefix(end + 1 + 16))
    }
  }
}
