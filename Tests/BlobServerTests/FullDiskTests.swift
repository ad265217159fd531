import BlobServer
import Blobs
import Platform
import Testing

struct FullDiskTests {
  @Test(.enabled(if: getuid() == 0, "only root can mount"))
  func aCreationThatIsRefusedLeavesNothingBehind() throws {
    let folder = try TestFolder()
    guard folder.path.mount("tmpfs", "tmpfs", options: "size=256k") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { folder.path.unmount() }
    let server = try TestServer(over: folder)
    folder.write("filler", pattern(256 << 10))
    #expect(try server.ask("POST", "/", [tus, ("Upload-Length", "10")], body: []).status == 507)
    #expect(try eventually { folder.kept.isEmpty }, "\(folder.kept)")
  }

  /// Fills the file system until `pages` pages are free.
  private func fill(_ folder: TestFolder, leaving pages: Int) {
    folder.remove("filler")
    var free = statvfs()
    _ = folder.path.withCString { statvfs($0, &free) }
    folder.write("filler", pattern(4096 * max(0, Int(free.f_bavail) - pages)))
  }

  /// A record of some pages is written only in part.
  @Test(.enabled(if: getuid() == 0, "only root can mount"), arguments: [0, 1, 2, 3, 4])
  func aRecordThatDoesNotFitIsALackOfRoom(pages: Int) throws {
    let folder = try TestFolder()
    guard folder.path.mount("tmpfs", "tmpfs") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { folder.path.unmount() }
    let server = try TestServer(over: folder)
    fill(folder, leaving: pages)
    let metadata = ("Upload-Metadata", "filename \(base64("a")),x \(base64(pattern(11_000)))")
    let answer = try server.ask("POST", "/", [tus, ("Upload-Length", "100"), metadata], body: [])
    #expect(answer.status == (pages < 4 ? 507 : 201), "\(answer.text)")
  }

  /// The last request of an upload finds no room for the record. Its bytes stay, and it ends when there is room.
  @Test(.enabled(if: getuid() == 0, "only root can mount"))
  func anUploadWhoseRecordDoesNotFitGoesOn() throws {
    let folder = try TestFolder()
    guard folder.path.mount("tmpfs", "tmpfs") else {
      return print("skipped: this root may not mount: \(String(cString: strerror(errno)))")
    }
    defer { folder.path.unmount() }
    let server = try TestServer(over: folder)
    let version = ("Upload-Draft-Interop-Version", "8")
    let path = "/" + (0..<12).map { String(repeating: "%D0%B6", count: 120) + "\($0)" }.joined(separator: "/")
    let bytes = pattern(108_000)
    let created = try server.ask(
      "PUT", path, [version, ("Upload-Complete", "?0")], body: Array(bytes[..<100_000]))
    let upload = try #require(created["Location"]).replacing("../", with: "/").replacing("//", with: "/")
    let url = "/" + upload.drop { $0 == "/" }
    fill(folder, leaving: 3)
    let client = try server.client()
    let last = [version, ("Upload-Complete", "?1"), ("Content-Type", "application/partial-upload")]
    try client.head("PATCH", url, last + [("Upload-Offset", "100000"), ("Transfer-Encoding", "chunked")])
    try client.send(Array("1f40\r\n".utf8) + bytes[100_000...] + Array("\r\n0\r\n\r\n".utf8))
    let refused = try client.answer()
    #expect(refused.status == 507, "\(refused.text)")
    folder.remove("filler")
    let asked = try server.ask("HEAD", url, [version])
    #expect(asked.status == 204 && asked["Upload-Offset"] == "108000", "\(asked.status)")
    let ended = try server.ask("PATCH", url, last + [("Upload-Offset", "108000")], body: [])
    #expect(ended.status / 100 == 2, "\(ended.text)")
    #expect(try server.ask("GET", path).body == bytes)
  }
}
