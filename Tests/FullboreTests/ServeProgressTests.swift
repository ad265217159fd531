import BlobHTTP
import Blobs
import Foundation
import Platform
import TestSupport
import Testing

@testable import BlobServer
@testable import fullbore

/// What `serve` tells of running uploads, and that its events are those of `docs/serve-events.schema.json`.
@Suite struct ServeProgressTests {
  private let scratch = Scratch()

  private func active(_ agent: String, _ uploads: [ActiveUpload], bytes: Int64, count: Int? = nil) -> ActiveSender {
    ActiveSender(
      sender: Sender(address: "192.0.2.7", agent: agent), bytesReceived: bytes, uploads: uploads,
      count: count ?? uploads.count)
  }

  @Test func aLineNamesTheSenderTheFileTheShareAndTheRate() {
    let film = ActiveUpload(path: "holiday/film.mov", received: 30 << 20, length: 60 << 20)
    var progress = ServeProgress()
    #expect(progress.isEmpty && progress.lines(width: 80, most: 8).isEmpty)
    progress.update([active("Mozilla/5.0 (iPhone; CPU)", [film], bytes: 0)], at: 0)
    #expect(progress.lines(width: 100, most: 8) == ["192.0.2.7 (iPhone)  holiday/film.mov  50 % of 60.0 MiB"])
    let senders = [
      active("Mozilla/5.0 (iPhone; CPU)", [film], bytes: 5 << 20, count: 3),
      active("curl/8", [ActiveUpload(path: "pipe", received: 1000, length: nil)], bytes: 1000),
      active("", [], bytes: 9),
    ]
    progress.update(senders, at: 1)
    #expect(
      progress.lines(width: 100, most: 8) == [
        "192.0.2.7 (iPhone)  holiday/film.mov  50 % of 60.0 MiB  and 2 more  5.00 MiB/s",
        "192.0.2.7 (curl)  pipe  1000 B", "192.0.2.7",
      ])
    // The name of the file is cut first.
    #expect(
      progress.lines(width: 73, most: 8)[0] == "192.0.2.7 (iPhone)  film.mov  50 % of 60.0 MiB  and 2 more  5.00 MiB/s")
    #expect(progress.lines(width: 20, most: 2).map { columns(of: $0) } == [20, 18])
    #expect(progress.lines(width: 80, most: 2)[1] == "and 2 more senders")
  }

  /// Names and what a client says of itself could move the cursor.
  @Test func nothingControlsTheTerminal() {
    let evil: [UInt8] = Array("a\u{1B}[2J\n\r\u{202E}".utf8) + [0xFF]
    var progress = ServeProgress()
    progress.update(
      [active("\u{1B}]0;x\u{7}", [ActiveUpload(path: BytePath(evil), received: 1, length: 2)], bytes: 1)], at: 0)
    for width in [200, 40] {
      let scalars = progress.lines(width: width, most: 8).flatMap(\.unicodeScalars)
      #expect(!scalars.isEmpty)
      #expect(scalars.allSatisfy { $0.value >= 0x20 && !(0x7F..<0xA0).contains($0.value) && $0.value != 0x202E })
    }
  }

  @Test func everyEventFollowsThePublishedSchema() throws {
    let name: BytePath = "events"
    let descriptor = scratch.path.appending(name).withCString { creat($0, 0o644) }
    let report = ServeReport(.json, output: Console(descriptor: descriptor, limit: 0))
    let server = try Server(ServerOptions(folder: scratch.path, port: 0))
    let upload = ActiveUpload(path: BytePath([0x61, 0xFF]), received: 5, length: 9)
    let unknown = ActiveUpload(path: "b", received: 5, length: nil)
    for senders in [
      [active("x", [upload, unknown], bytes: 1)], [],
      [ActiveSender(sender: nil, bytesReceived: 2, uploads: [], count: 0)],
    ] {
      report.show(server.activity, senders)
      // The next object is due in a second.
      usleep(1_000_000)
    }
    let item = StoredItem(isFolder: false, length: 5, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
    let received: [(Publication.Outcome, Sender?)] = [
      (.created, nil), (.same, Sender(address: "192.0.2.7", agent: "x")),
    ]
    for (outcome, sender) in received {
      report.received(
        ReceivedFile(try ServedPath([0x61, 0xFF]), Publication(outcome: outcome, item: item), by: sender))
    }
    let unfinished = [nil, 9].map {
      UnfinishedUpload(path: "c", received: 1, length: $0, isKept: $0 == nil)
    }
    report.end(.time, unfinished, cut: ["d"], expire: .seconds(1))
    report.finish(within: .seconds(20))
    close(descriptor)

    let schema = try EventSchema(of: "serve")
    var seen: [String: Int] = ["listening": 1]
    for line in scratch.content(of: name).split(separator: UInt8(ascii: "\n")) {
      let event = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      #expect(schema.fault(in: event) == nil, "\(event)")
      seen[event["event"] as? String ?? "", default: 0] += 1
    }
    #expect(Set(seen.keys) == schema.names)
    #expect(seen["progress"] == 2, "nothing is written while nobody sends: \(seen)")
    #expect(schema.fault(in: ["event": "progress", "count": 1]) != nil)
  }
}
