import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobServer
@testable import fullbore

/// What `serve` does with a file that it has received.
@Suite struct UploadHookTests {
  private let scratch = Scratch()
  private let notices = Notices()

  private func file(_ path: String, isSame: Bool = false) throws -> ReceivedFile {
    let item = StoredItem(isFolder: false, length: 5, modified: 0, modifiedSeconds: 0, changed: 0, inode: 1)
    return ReceivedFile(
      try ServedPath(path.utf8), Publication(outcome: isSame ? .same : .created, item: item),
      by: Sender(address: "192.0.2.7", agent: "curl/8"))
  }

  private func program(_ text: String) throws -> UploadCommand {
    let path = scratch.file("program", Array("#!/bin/sh\n\(text)\n".utf8))
    #expect(path.withCString { chmod($0, 0o755) } == 0)
    return try UploadCommand(path, option: "on-upload")
  }

  @Test func theProgramGetsThePathAndNothingElse() throws {
    let command = try program("printf '%s|' \"$#\" \"$@\" > \(scratch.path)/seen; echo out; test -z \"$(cat)\"")
    let path = BytePath("/x/$(touch \(scratch.path)/hurt) ; \"a\"\n*")
    #expect(command.run(on: path) == nil)
    #expect(scratch.content(of: "seen") == Array("1|".utf8) + path.bytes + Array("|".utf8))
    #expect(scratch.content(of: "hurt").isEmpty)
  }

  @Test func theErrorSaysHowTheProgramEnded() throws {
    #expect(try program("exit 3").run(on: "/a") == "ended with status 3")
    #expect(try program("kill -9 $$").run(on: "/a") == "was ended by signal 9")
    let text = scratch.file("garbage", [0, 1, 2])
    #expect(text.withCString { chmod($0, 0o755) } == 0)
    #expect(try UploadCommand(text, option: "on-upload").run(on: "/a")?.hasPrefix("does not start: ") == true)
  }

  /// A report that draws on the terminal writes what the program prints, line by line.
  @Test func outputOfTheProgramIsPassedOnLineByLine() throws {
    let seen = Mutex<[String]>([])
    func lines(_ text: String) throws -> [String] {
      seen.withLock { $0 = [] }
      #expect(try program(text).run(on: "/a") { line in seen.withLock { $0.append(line) } } == nil)
      return seen.withLock { $0 }
    }
    #expect(try lines("echo one; echo two >&2; printf three") == ["one", "two", "three"])
    #expect(try lines("head -c 10000 /dev/zero | tr '\\0' x").map(\.utf8.count) == [4096, 4096, 1808])
    #expect(try lines("seq 20000").count == 20_000)
    #expect(try lines("exec >&- 2>&-; sleep 0.2") == [])
    let began = ContinuousClock.now
    // A program in the background keeps the pipe open.
    #expect(try lines("sleep 30 & echo $! > \(scratch.path)/pid; echo done") == ["done"])
    #expect(began.duration(to: .now) < .seconds(20))
    if let pid = Int32(String(decoding: scratch.content(of: "pid").dropLast(), as: UTF8.self)) { kill(pid, SIGKILL) }
    #expect(try program("exit 3").run(on: "/a") { _ in } == "ended with status 3")
  }

  @Test func filesAreHandledInOrderOneAtATime() async throws {
    let seen = Mutex<[BytePath]>([])
    let running = Mutex((now: 0, most: 0))
    let queue = FileQueue<ReceivedFile>("it", notice: notices.add) { entry in
      running.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
      await Task.yield()
      seen.withLock { $0.append(entry.file.path) }
      running.withLock { $0.now -= 1 }
    }
    for number in 0..<500 { queue.add(try file("\(number)")) }
    await queue.finish(within: .seconds(30))
    #expect(seen.withLock { $0 } == (0..<500).map { BytePath("\($0)") })
    #expect(running.withLock { $0.most } == 1 && notices.all.isEmpty)
  }

  @Test func filesThatDoNotFitIntoTheQueueAreCounted() async throws {
    let (gate, open) = AsyncStream.makeStream(of: Void.self)
    let queue = FileQueue<ReceivedFile>("it", atMost: 3, notice: notices.add) { _ in for await _ in gate { break } }
    for number in 0..<5 { queue.add(try file("\(number)")) }
    #expect(notices.all == ["3 files wait for it: further ones are not handed to it until it has caught up"])
    for _ in 0..<3 { open.yield() }
    await queue.finish(within: .seconds(30))
    #expect(Array(notices.all.dropFirst()) == ["2 files were not handed to it"])
  }

  @Test func aNoticeCountsTheFilesThatAreLeftAtTheEnd() async throws {
    let queue = FileQueue<ReceivedFile>("it", notice: notices.add) { _ in try? await Task.sleep(for: .seconds(60)) }
    for name in ["a", "b"] { queue.add(try file(name)) }
    await queue.finish(within: .milliseconds(50))
    queue.add(try file("c"))
    #expect(notices.all.first == "it was not done with 'a' and 1 further file at the end")
  }

  @Test func aNotificationIsSentAgainUntilItIsTaken() async throws {
    let bodies = Mutex<[String]>([])
    let peer = HTTPPeer { request in
      let count = bodies.withLock { bodies in
        bodies.append(
          "\(request.method) \(request.headers["Content-Type"] ?? "") \(String(decoding: request.body, as: UTF8.self))")
        return bodies.count
      }
      return HTTPPeer.Reply([503, 429, 204][min(count, 3) - 1])
    }
    let url = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/hook?key=secret"))
    let notifier = UploadNotifier(url, pauses: [.milliseconds(1), .milliseconds(1)])
    let entry = FileQueue<ReceivedFile>.Entry(
      file: try file("in/a \"b\"", isSame: true), time: Timestamp(nanoseconds: 0))
    #expect(await notifier.send(entry) == nil)
    let expected =
      #"POST application/json {"event":"received","path":"in/a \"b\"","length":5,"unchanged":true,"#
      + #""address":"192.0.2.7","agent":"curl/8","time":"1970-01-01T00:00:00.000Z"}"#
    #expect(bodies.withLock { $0 } == [expected, expected, expected])
  }

  /// The first file is given up, and the second one is taken at its second attempt.
  @Test func anOutageOfTheURLIsReportedAtItsBeginAndItsEnd() async throws {
    let count = Mutex(0)
    let peer = HTTPPeer { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      return HTTPPeer.Reply(number < 4 ? 503 : 204)
    }
    let url = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/hook"))
    let notifier = UploadNotifier(url, pauses: [.milliseconds(1)], notice: notices.add)
    for name in ["a", "b", "c"] {
      _ = await notifier.send(FileQueue<ReceivedFile>.Entry(file: try file(name), time: .now))
    }
    notifier.finish()
    let place = "http://127.0.0.1:\(peer.port)"
    #expect(
      notices.all == [
        "\(place) was not told of 'a': the answer was 503: trying again, and what is received meanwhile waits",
        "\(place) takes notifications again; it was not told of 1 file",
      ])
  }

  @Test func aNotificationThatCannotSucceedIsGivenUp() async throws {
    let count = Mutex(0)
    let peer = HTTPPeer { _ in
      count.withLock { $0 += 1 }
      return HTTPPeer.Reply(404)
    }
    let entry = FileQueue<ReceivedFile>.Entry(file: try file("a"), time: .now)
    let url = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/hook"))
    #expect(await UploadNotifier(url, pauses: [.milliseconds(1)]).send(entry) == "the answer was 404")
    #expect(count.withLock { $0 } == 1)
    let nobody = try #require(HTTPURL("http://127.0.0.1:1/hook?key=secret"))
    let problem = try #require(await UploadNotifier(nobody, pauses: [.milliseconds(1)]).send(entry))
    #expect(!problem.contains("secret"), "\(problem)")
  }
}
