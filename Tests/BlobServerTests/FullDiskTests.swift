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
}
