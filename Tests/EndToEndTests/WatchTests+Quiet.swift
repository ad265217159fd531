import Foundation
import Testing

// A watch that has nothing to do.
extension EndToEnd.WatchTests {
  /// The watch prints nothing without an event, so that a program that reads its output is not woken.
  @Test func nothingIsSaidWhileNothingHappens() async throws {
    let photo = try scratch.file("gallery/IMG_1.jpg", 10_000)
    let server = try await ServeProcess.start(in: scratch)
    let watch = try WatchProcess.startBlind(to: server.url, in: scratch, settle: "1s", ["--json"])
    func done(_ count: Int) async throws {
      try await watch.until("\(count) are done") {
        watch.command.output.components(separatedBy: #""event":"done""#).count > count ? true : nil
      }
    }
    try await done(1)
    // A link is sent only after a second, in which an upload would report its progress ten times.
    #expect(link(photo, gallery("IMG_2.jpg")) == 0)
    try await done(2)
    let lines = watch.command.output.split(separator: "\n")
    let first = try #require(lines.firstIndex { $0.contains(#""event":"done""#) })
    let second = try #require(lines.lastIndex { $0.contains(#""event":"start""#) })
    let progress = lines[first..<second].filter { $0.contains(#""event":"progress""#) }
    #expect(progress.count <= 4, "\(progress)")
    #expect(try await watch.stop() == .exited(130))
  }
}
