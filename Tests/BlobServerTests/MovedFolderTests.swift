import BlobServer
import Blobs
import Platform
import Synchronization
import Testing

/// The served folder after another program has moved or deleted it.
struct MovedFolderTests {
  private let outer: TestFolder
  private let server: TestServer
  private let lines = Lines()
  private final class Lines: Sendable { let all = Mutex<[String]>([]) }
  private var notices: [String] { lines.all.withLock { $0 } }

  init() throws {
    outer = try TestFolder()
    outer.makeFolder("served")
    server = try TestServer(over: outer) { [outer, lines] in
      $0.folder = outer.path.appending("served")
      $0.notice = { line in lines.all.withLock { $0.append(line) } }
    }
  }

  /// The folder in its place has a file where the server needs its own folder.
  @Test func aFolderThatCannotReplaceTheServedOneIsReportedOnce() throws {
    outer.rename("served", to: "old")
    #expect(try eventually { notices.count == 1 })
    #expect(notices.first?.contains("goes on in the folder that was there") == true, "\(notices)")
    outer.makeFolder("served")
    outer.write("served/.fullbore", [1])
    #expect(try eventually { notices.count == 2 })
    #expect(notices.last?.contains("cannot be served") == true, "\(notices)")
    #expect(try server.ask("PUT", "/a", body: [1]).status == 201)
    #expect(outer.read("old/a") == [1])
    outer.remove("served/.fullbore")
    #expect(try eventually { notices.count == 3 })
    #expect(notices.last?.contains("is another folder now") == true, "\(notices)")
    #expect(try server.ask("PUT", "/b", body: [1]).status == 201)
    #expect(outer.read("served/b") == [1])
  }

  /// The folder comes back before another one takes its place.
  @Test func aNoticeSaysThatTheServedFolderIsBack() throws {
    outer.rename("served", to: "old")
    #expect(try eventually { notices.count == 1 })
    outer.rename("old", to: "served")
    #expect(try eventually { notices.count == 2 })
    #expect(notices.last?.contains("is at its path again") == true, "\(notices)")
  }

  @Test func aDeletedFolderIsNotAnEmptyOne() throws {
    outer.rename("served", to: "old")
    // The server looks once a second. If it does so just now, it finds a folder that was moved, and uses it.
    #expect(
      try eventually {
        outer.removeOwnFolder(of: "old")
        return outer.path.appending("old").withCString { rmdir($0) } == 0
      })
    #expect(try eventually { notices.last?.contains("deleted") == true }, "\(notices)")
    #expect(try server.ask("GET", "/").status == 404)
    #expect(try server.ask("PUT", "/a", body: [1]).status >= 500)
  }
}
