import BlobHTTP
import BlobServer
import Blobs
import Platform
import Testing

/// Folders in the served one that the server cannot publish into.
struct TargetFolderTests {
  private static let partial = [("Content-Type", "application/partial-upload")]
  /// Requests to upload 100 MB to the folder `ro`.
  private static let creations: [(String, String, [(String, String)])] = [
    ("PUT", "/ro/x", []),
    ("PUT", "/ro/new/folder/x", []),
    ("POST", "/ro/", [tus, ("Upload-Length", "100000000"), ("Content-Type", "application/offset+octet-stream")]),
    (
      "POST", "/",
      [
        tus, ("Upload-Length", "100000000"), ("Content-Type", "application/offset+octet-stream"),
        ("Upload-Metadata", "relativePath \(base64("ro/new/x"))"),
      ]
    ),
    (
      "POST", "/ro/",
      [
        tus, ("Upload-Length", "100000000"), ("Content-Type", "application/offset+octet-stream"),
        ("Upload-Concat", "partial"),
      ]
    ),
    ("PUT", "/ro/x", [("Upload-Complete", "?1")]), ("POST", "/ro/", [("Upload-Complete", "?0")]),
  ]

  /// The error responses to all these requests, which must come before the bodies are sent.
  private func refusals(_ server: TestServer, _ folder: String = "ro") throws -> [String] {
    var texts: [String] = []
    for (method, path, headers) in Self.creations {
      let client = try server.client()
      let path = path.replacing("/ro/", with: "/\(folder)/")
      let headers = headers.map { ($0.0, $0.1.replacing(base64("ro/new/x"), with: base64("\(folder)/new/x"))) }
      try client.head(method, path, headers + [("Content-Length", "100000000"), ("Expect", "100-continue")])
      let answer = try client.answer()
      #expect(answer.status == 403, "\(method) \(path) \(headers): \(answer.text)")
      texts.append(answer.text)
    }
    let form = "--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\nbytes\r\n--b--\r\n"
    let answer = try server.ask(
      "POST", "/\(folder)/", [("Content-Type", "multipart/form-data; boundary=b")], body: Array(form.utf8))
    #expect(answer.status == 403)
    #expect(server.folder.kept.isEmpty)
    return texts + [answer.text]
  }

  @Test func aFolderWithoutTheRightToWriteTakesNoBytes() throws {
    let folder = try TestFolder()
    try folder.withoutPrivileges {
      let server = try TestServer(over: folder)
      folder.makeFolder("ro")
      folder.write("ro/there", [1, 2])
      folder.allowWriting("ro", false)
      defer { folder.allowWriting("ro", true) }
      for text in try refusals(server) {
        #expect(text.contains("may not write into /ro: Permission denied"), "\(text)")
      }
      // Bytes that are already stored need no write permission.
      let same = try server.ask("PUT", "/ro/there", body: [1, 2])
      #expect(same.status == 204)
      #expect(same[UploadOutcomeField.name] == UploadOutcomeField.unchanged)
      #expect(try server.ask("PUT", "/ro/there", [("If-Match", "*")], body: [1, 3]).status == 403)
      #expect(folder.read("ro/there") == [1, 2])
    }
  }

  /// With a status below 500 the client would assume that its upload is gone, and would send all bytes again.
  @Test func anUploadWhoseFolderLosesTheRightToWriteIsNotGone() throws {
    let folder = try TestFolder()
    try folder.withoutPrivileges {
      let server = try TestServer(over: folder)
      folder.makeFolder("d")
      let upload = try server.create("d/a", length: 3)
      let resumable = try #require(
        try server.ask("POST", "/d/b", [("Upload-Complete", "?0")], body: [1])["Location"])
      var parts: [String] = []
      for byte in [UInt8(1), 2] {
        let head = [tus, ("Upload-Length", "1"), ("Upload-Concat", "partial")]
        let part = try #require(
          try server.ask("POST", "/", head + [("Content-Type", "application/offset+octet-stream")], body: [byte])[
            "Location"])
        parts.append(part)
      }
      let final = [
        tus, ("Upload-Concat", "final;" + parts.joined(separator: " ")),
        ("Upload-Metadata", "filename \(base64("d/c"))"),
      ]
      let first = try server.client()
      try first.head("PUT", "/d/put", [("Content-Length", "2")])
      try first.send([1])
      #expect(try eventually { folder.kept.count { $0.hasSuffix(".data") } == 5 })
      folder.allowWriting("d", false)
      defer { folder.allowWriting("d", true) }
      try first.send([2])
      #expect(try first.answer().status == 500)
      let rest = Self.partial + [("Upload-Offset", "1"), ("Upload-Complete", "?1")]
      #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 500)
      #expect(try server.ask("HEAD", upload, [tus]).status == 500)
      #expect(try server.patch(upload, at: 3, []).status == 500)
      #expect(try server.ask("PATCH", resumable, rest, body: [2]).status == 500)
      #expect(try server.ask("HEAD", resumable, [("Upload-Draft-Interop-Version", "8")]).status == 500)
      #expect(try server.ask("POST", "/", final, body: []).status == 500)
      folder.allowWriting("d", true)
      #expect(try server.offset(upload) == 3)
      #expect(try server.ask("HEAD", resumable, [("Upload-Draft-Interop-Version", "8")])["Upload-Complete"] == "?1")
      #expect(try server.ask("POST", "/", final, body: []).status == 201)
      #expect(folder.read("d/a") == [1, 2, 3])
      #expect(folder.read("d/b") == [1, 2])
      #expect(folder.read("d/c") == [1, 2])
    }
  }

  /// Another device, and another folder of the same device, mounted there.
  @Test(.enabled(if: getuid() == 0, "only root can mount"), arguments: [true, false])
  func aFolderOnAnotherFileSystemTakesNoBytes(isOtherDevice: Bool) throws {
    let (folder, other) = (try TestFolder(), try TestFolder())
    folder.makeFolder("disk")
    let place = folder.path.appending("disk")
    let isMounted = isOtherDevice ? place.mount("tmpfs", "tmpfs") : place.mount(other.path.description, nil, 4096)
    // In a container, even root may not be permitted to mount.
    guard isMounted else { return print("skipped: this root may not mount: \(String(cString: strerror(errno)))") }
    defer { place.unmount() }
    let server = try TestServer(over: folder)
    folder.write("disk/there", [1, 2])
    for text in try refusals(server, "disk") {
      let reason = isOtherDevice ? "/disk is on another file system than the served folder" : "/disk is another mount"
      #expect(text.contains(reason), "\(text)")
    }
    #expect(TestFolder.names(place) == ["there"], "no folder is made there")
    #expect(try server.ask("PUT", "/disk/there", body: [1, 2]).status == 204)
    #expect(try server.ask("GET", "/disk/there").body == [1, 2])
  }

  /// Some file systems find the server's own folder under other names too; a mount of it stands for these.
  @Test(.enabled(if: getuid() == 0, "only root can mount"))
  func theServersOwnFolderIsNotReachedByAnotherName() throws {
    let folder = try TestFolder()
    let server = try TestServer(over: folder)
    folder.makeFolder("FULLBO~1")
    let place = folder.path.appending("FULLBO~1")
    guard place.mount(folder.path.appending(".fullbore").description, nil, 4096) else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { place.unmount() }
    for path in ["/FULLBO~1/", "/FULLBO~1/lock", "/FULLBO~1/new/lock"] {
      #expect(try server.ask("GET", path).status == 403)
    }
    #expect(try server.ask("PUT", "/FULLBO~1/x", body: [1]).text.contains("kept for unfinished uploads"))
    #expect(folder.kept.isEmpty)
  }

  /// The file system is mounted after the upload was created.
  @Test(.enabled(if: getuid() == 0, "only root can mount"))
  func aMountThatComesLaterLosesNoBytes() throws {
    let folder = try TestFolder()
    let server = try TestServer(over: folder)
    folder.makeFolder("disk")
    let place = folder.path.appending("disk")
    let upload = try server.create("disk/a", length: 3)
    guard place.mount("tmpfs", "tmpfs") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    let answer = try server.patch(upload, at: 0, [1, 2, 3])
    #expect(answer.status == 500)
    #expect(answer.text.contains("another file system"))
    place.unmount()
    #expect(try server.offset(upload) == 3)
    #expect(folder.read("disk/a") == [1, 2, 3])
  }
}

extension TestFolder {
  /// Runs `body` on this thread, and on all threads that it starts, as a user without root's privileges.
  func withoutPrivileges(_ body: () throws -> Void) throws {
    guard getuid() == 0 else { return try body() }
    typealias Call = @convention(c) (UInt32) -> Int32
    let setfsuid = unsafeBitCast(try #require(dlsym(nil, "setfsuid")), to: Call.self)
    path.withCString { _ = chown($0, 65534, 65534) }
    _ = setfsuid(65534)
    defer { _ = setfsuid(0) }
    try body()
  }

  func allowWriting(_ name: BytePath, _ isAllowed: Bool) {
    path.appending(name).withCString { _ = chmod($0, isAllowed ? 0o755 : 0o555) }
  }
}
