@testable import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// A file whose permissions, owner or links change, as by a backup of hard links or an administrator, is still the version
/// that a client knows. A file that was written to is not, whatever its times say.
struct ChangedAttributesTests {
  enum Change: CaseIterable { case permissions, owner, link }
  enum Form: CaseIterable { case put, tus, overwrite }

  /// Begins an upload that replaces `/a`, and returns what sends the rest and tells the status of the answer.
  private func begin(
    _ form: Form, _ tag: String, _ bytes: [UInt8], at server: TestServer
  ) throws -> (TestServer) throws -> Int {
    if form == .put {
      let client = try server.client()
      let head = [("If-Match", tag), ("Content-Length", "\(bytes.count)"), ("Expect", "100-continue")]
      try client.head("PUT", "/a", head)
      try #require(try client.readHead().status == 100)
      return { _ in
        try client.send(bytes)
        return try client.answer().status
      }
    }
    let named = form == .tus ? ",replaces \(base64(tag))" : ""
    let upload = try server.create("a", length: bytes.count, metadata: ",overwrite \(base64("true"))" + named)
    return { try $0.patch(upload, at: 0, bytes).status }
  }

  @Test(arguments: Form.allCases, Change.allCases)
  func aFileWithOtherAttributesIsReplaced(_ form: Form, _ change: Change) throws {
    let server = try TestServer()
    let tag = try #require(try server.ask("PUT", "/a", body: [0, 0, 0])["ETag"])
    let end = try begin(form, tag, [1, 2, 3], at: server)
    server.folder.change("a", by: change)
    #expect(try server.ask("HEAD", "/a")["ETag"] != tag)
    #expect(try end(server) == 204)
    #expect(server.folder.read("a") == [1, 2, 3])
  }

  /// The record keeps what is needed for that.
  @Test(arguments: [Form.tus, .overwrite]) func thisHoldsAfterTheServerWasStartedAgain(_ form: Form) throws {
    let folder = try TestFolder()
    var end: ((TestServer) throws -> Int)?
    do {
      let server = try TestServer(over: folder)
      let tag = try #require(try server.ask("PUT", "/a", body: [0, 0, 0])["ETag"])
      end = try begin(form, tag, [1, 2, 3], at: server)
    }
    folder.change("a", by: .link)
    #expect(try end?(TestServer(over: folder)) == 204)
    #expect(folder.read("a") == [1, 2, 3])
  }

  /// Programs may write into a file and set its modification time back, and nobody then knows whether the bytes are the same.
  @Test(arguments: Form.allCases, [true, false])
  func aFileThatWasWrittenToIsKept(_ form: Form, _ setsTimeBack: Bool) throws {
    let server = try TestServer()
    let tag = try #require(try server.ask("PUT", "/a", body: [0, 0, 0])["ETag"])
    let end = try begin(form, tag, [1, 2, 3], at: server)
    let before = StoredItem(server.folder.status("a"))
    server.folder.untilItsTimeChanges("a") { server.folder.write("a", [9, 9, 9]) }
    if setsTimeBack {
      let (seconds, nanoseconds) = before.modified.quotientAndRemainder(dividingBy: 1_000_000_000)
      let times = [timespec](repeating: timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds)), count: 2)
      server.folder.path.appending("a").withCString { _ = utimensat(AT_FDCWD, $0, times, 0) }
      #expect(StoredItem(server.folder.status("a")).modified == before.modified)
    } else {
      server.folder.change("a", by: .permissions)
    }
    #expect(try end(server) == (form == .overwrite ? 409 : 412))
    #expect(server.folder.read("a") == [9, 9, 9])
  }

  /// A program of `--on-upload` may change the owner of each file, before a client that has lost the response asks again.
  @Test(arguments: Change.allCases) func aFinishedUploadStaysFinished(_ change: Change) throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("a", length: 3)
      #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 204)
      folder.change("a", by: change)
      #expect(try server.offset(upload) == 3)
    }
    #expect(try TestServer(over: folder).offset(upload) == 3)
  }

  /// A member whose file was there already counts as arrived.
  @Test func aMemberOfAGroupStaysThere() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/a.jpg", body: [1]).status == 201)
    #expect(try server.send("a.jpg", [1], position: 1, of: 2).status == 201)
    server.folder.change("a.jpg", by: .link)
    #expect(try server.send("a.mov", [2], position: 2, of: 2)["Upload-Outcome"] == nil)
    #expect(server.folder.read("a.mov") == [2])
  }
}

extension TestFolder {
  func status(_ name: BytePath) -> stat {
    var status = stat()
    path.appending(name).withCString { _ = stat($0, &status) }
    return status
  }

  /// Repeats `change` until the file's change time has another value: the kernel's clock advances every few milliseconds.
  func untilItsTimeChanges(_ name: BytePath, _ change: () -> Void) {
    let before = FileStamp(status(name)).changed
    repeat { change() } while FileStamp(status(name)).changed == before
  }

  func change(_ name: BytePath, by change: ChangedAttributesTests.Change) {
    path.appending(name).withCString { place in
      untilItsTimeChanges(name) {
        switch change {
        case .permissions: _ = chmod(place, 0o600)
        case .owner: _ = chown(place, getuid(), getuid() == 0 ? 1 : getgid())
        case .link:
          path.appending("backup").withCString {
            unlink($0)
            _ = Platform.link(place, $0)
          }
        }
      }
    }
  }
}
