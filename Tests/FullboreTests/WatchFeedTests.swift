import Blobs
import Platform
import Testing

@testable import fullbore

/// The symbolic links of a watch, whose targets the system does not report.
@Suite struct WatchFeedTests {
  private let scratch = Scratch()

  private let counters = PushCounters()

  private func feed(_ links: WatchedLinks = WatchedLinks()) throws -> WatchFeed {
    scratch.folder("gallery")
    let arguments: [BytePath] = ["--quiet", "--settle", "50ms", scratch.path.appending("gallery/"), "http://host/"]
    let options = try WatchOptions(Arguments(arguments, WatchCommand.declaration))
    return try WatchFeed(
      options, pushReport(options.push.output, counters), counters, links: links, walkInterval: .seconds(1))
  }

  /// The names that the feed returns until it has returned all of `names`; others too, if they come before these. `areSent`:
  /// none is in progress any more.
  private func next(_ names: Set<String>, from feed: WatchFeed, areSent: Bool = true) async -> Set<String> {
    let reading = Task {
      var found: Set<String> = []
      while !names.isSubset(of: found), let items = await feed.next() {
        found.formUnion(items.map { $0.path.name.description })
        if areSent { _ = feed.inbox.endAll() }
        _ = feed.inbox.takeSeeksDeleted()
      }
      return found
    }
    let deadline = Task {
      try await Task.sleep(for: .seconds(20))
      reading.cancel()
      feed.wake()
    }
    defer { deadline.cancel() }
    return await reading.value
  }

  @Test func aLinkThatIsNotCheckedIsFoundByAWalk() async throws {
    let names: Set = ["1.jpg", "2.jpg", "3.jpg"]
    let feed = try feed(WatchedLinks(limit: 1, interval: .milliseconds(200)))
    while await !feed.takeListed() { _ = await feed.next() }
    for name in names {
      scratch.file(BytePath("outside/\(name)"))
      scratch.link(BytePath("gallery/\(name)"), to: BytePath("../outside/\(name)"))
    }
    #expect(await next(names, from: feed) == names)
    for name in names { scratch.file(BytePath("outside/\(name)"), [1, 2, 3, 4]) }
    #expect(await next(names, from: feed) == names)
  }

  /// A run may end before it has begun all files that the feed has returned.
  @Test func filesOfARunThatHasEndedAreFoundAgain() async throws {
    let names: Set = ["1.jpg", "2.jpg"]
    let feed = try feed()
    for name in names { scratch.file(BytePath("gallery/\(name)"), [1, 2, 3]) }
    #expect(await next(names, from: feed, areSent: false) == names)
    #expect(counters.files.open == 2 && counters.files.foundBytes == 6)
    await feed.restart()
    #expect(counters.files.open == 0 && counters.files.foundBytes == 0)
    #expect(await next(names, from: feed, areSent: false) == names)
    #expect(counters.files.open == 2)
  }

  @Test func aLinkWithTheNameOfAFileInTheMakingIsLeftOut() async throws {
    scratch.file("outside/one")
    scratch.folder("gallery")
    for name in ["film.mov.part", "photo.jpg"] {
      scratch.link(BytePath("gallery/\(name)"), to: "../outside/one")
    }
    let feed = try feed(WatchedLinks(interval: .milliseconds(200)))
    #expect(await next(["photo.jpg"], from: feed) == ["photo.jpg"])
    for round in 1...3 as ClosedRange<UInt8> {
      scratch.file("outside/one", Array(repeating: 7, count: 10 * Int(round)))
      #expect(await next(["photo.jpg"], from: feed) == ["photo.jpg"])
    }
  }
}
