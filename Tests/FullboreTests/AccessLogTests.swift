import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobServer
@testable import fullbore

/// The access log of `serve`.
@Suite struct AccessLogTests {
  private let scratch = Scratch()
  private let notices = Notices()

  private func request(_ path: BytePath = "/a", agent: String? = "curl/8", method: String = "GET") -> AnsweredRequest {
    AnsweredRequest(
      time: 1_795_753_916_123_000_000, duration: .milliseconds(1234),
      client: Sender(address: "192.0.2.7", agent: agent),
      method: method, path: path, status: 200, bytesReceived: 12, bytesSent: 345)
  }

  @Test func aLineHasTheCommonForm() {
    #expect(
      LogFormat.common.line(request())
        == "192.0.2.7 - - [27/Nov/2026:04:31:56 +0000] \"GET /a HTTP/1.1\" 200 345 \"-\" \"curl/8\" 12 1.234")
    #expect(LogFormat.common.line(request("", agent: nil, method: "")).hasSuffix("\"-\" 200 345 \"-\" \"-\" 12 1.234"))
  }

  @Test func aLineCanBeJSON() {
    #expect(
      LogFormat.json.line(request())
        == #"{"event":"request","time":"2026-11-27T04:31:56.123Z","address":"192.0.2.7","method":"GET","path":"/a","#
        + #""status":200,"received":12,"sent":345,"seconds":1.234,"agent":"curl/8"}"#)
  }

  /// No client can end a line, forge one, or move the cursor of a terminal.
  @Test(arguments: [LogFormat.common, .json]) func nothingFromOutsideLeavesItsPlace(_ format: LogFormat) {
    let nasty = "a\"\\\n\r\t\u{1B}[2J\u{7F}\u{9B}\u{2028}ü"
    let line = format.line(request(BytePath("/" + nasty), agent: nasty, method: "G\u{1}T"))
    #expect(
      !line.unicodeScalars.contains { $0.value < 0x20 || 0x7F...0x9F ~= $0.value || $0.value == 0x2028 }, "\(line)")
    if format == .common {
      #expect(line.contains(#""a\x22\x5C\x0A\x0D\x09\x1B[2J\x7F\xC2\x9B\xE2\x80\xA8\xC3\xBC""#), "\(line)")
      #expect(line.contains(#""G\x01T /a\x22"#), "\(line)")
    }
  }

  @Test func aRenamedFileIsOpenedAgain() throws {
    let path = scratch.path.appending("log")
    let log = AccessLog(try LogFile(path), .common, notice: notices.add)
    log.add(request("/1"))
    #expect(eventually { scratch.content(of: "log").count(where: { $0 == 10 }) == 1 })
    path.withCString { old in scratch.path.appending("old").withCString { _ = rename(old, $0) } }
    log.reopen()
    #expect(eventually { path.withCString { access($0, F_OK) } == 0 })
    log.add(request("/2"))
    log.finish(within: .seconds(20))
    #expect(String(decoding: scratch.content(of: "old"), as: UTF8.self).contains("GET /1 "))
    #expect(String(decoding: scratch.content(of: "log"), as: UTF8.self).contains("GET /2 "))
    #expect(notices.all.isEmpty)
  }

  @Test func aFullDiskIsSaidAndNotFatal() throws {
    let log = AccessLog(try LogFile("/dev/full"), .json, notice: notices.add)
    for number in 0..<3 {
      log.add(request(BytePath("/\(number)")))
      usleep(20_000)
    }
    log.finish(within: .seconds(20))
    #expect(notices.all.first?.contains("lost: No space left on device") == true, "\(notices.all)")
    #expect(notices.all.count <= 2)
  }

  /// A named pipe that nobody reads blocks the thread of the log, and nobody else.
  @Test func aFileThatTakesNothingHoldsNobodyUp() throws {
    let path = scratch.path.appending("pipe")
    #expect(path.withCString { mkfifo($0, 0o600) } == 0)
    #expect(throws: ServerError.self) { try LogFile(path) }
    let reader = path.withCString { open($0, O_RDONLY | O_NONBLOCK) }
    let log = AccessLog(try LogFile(path), .common, notice: notices.add)
    for _ in 0..<50_000 { log.add(request()) }
    log.finish(within: .milliseconds(100))
    #expect(notices.all == ["the log takes no more lines: the last ones were not written"])
    close(reader)
    #expect(eventually { notices.all.count > 1 })
    #expect(notices.all.last?.contains("of the log are lost") == true, "\(notices.all)")
  }

  @Test func aLogInTheServedFolderIsRefused() throws {
    scratch.folder("served/in")
    let served = scratch.path.appending("served")
    func problem(_ arguments: BytePath...) -> String? {
      usageError { () throws(UsageError) in
        _ = try ServeCommand(Arguments([served] + arguments, ServeCommand.declaration))
      }
    }
    #expect(problem("--log", served.appending("in/log"))?.contains("clients can read it") == true)
    #expect(problem("--log", served.appending("../served/log"))?.contains("clients can read it") == true)
    #expect(problem("--log", scratch.path.appending("served.log")) == nil)
    #expect(problem("--log", "-", "--log-format", "json") == nil)
    #expect(problem("--log-format", "json")?.contains("belongs to --log") == true)
    #expect(problem("--log", "-", "--log-format", "xml")?.contains("wanted common or json") == true)
    #expect(problem("--log", scratch.path.appending("none/log"))?.contains("No such file") == true)
    #expect(problem("--metrics", "0.0.0.0:1")?.contains("asks for no token") == true)
    #expect(problem("--metrics", "[::1]:0") == nil)
    #expect(problem("--notify", "https://me:secret@host/")?.contains("wanted a URL") == true)
    #expect(problem("--notify", "https://me:secret@host/")?.contains("secret") == false)
    #expect(problem("--notify", "http://host:80/x@y") == nil)
    #expect(problem("--notify", "http://host/", "--read-only")?.contains("no file would ever") == true)
    #expect(problem("--on-upload", served)?.contains("not a program") == true)
    #expect(problem("--on-upload", scratch.file("text"))?.contains("not a program") == true)
    #expect(problem("--on-upload", "/none")?.contains("No such file") == true)
  }
}

/// Collects what the operator is told.
final class Notices: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  var add: @Sendable (String) -> Void { { line in self.lines.withLock { $0.append(line) } } }
}

/// Waits until other threads have made the condition true, for 30 seconds at most.
private func eventually(_ condition: () -> Bool) -> Bool {
  let deadline = ContinuousClock.now + .seconds(30)
  while !condition() {
    if ContinuousClock.now > deadline { return false }
    usleep(5_000)
  }
  return true
}
