import BlobHTTP
import Blobs
import Platform
import Testing

@testable import fullbore

/// Whether a file may be what a server of this computer shows.
@Suite struct FileUsersTests {
  #if os(Linux)
    @Test func aFileThatSomebodyHasOpenHasUsers() throws {
      let scratch = Scratch()
      let file = scratch.file("a.jpg")
      #expect(FileUsers(of: file, for: .anything) == .none)
      let descriptor = file.open(O_RDONLY)
      #expect(FileUsers(of: file, for: .anything) == .some)
      close(descriptor)
      #expect(FileUsers(of: file, for: .anything) == .none)
      #expect(FileUsers(of: scratch.path.appending("gone.jpg"), for: .anything) == .unknown)
    }
  #endif

  @Test func anAddressOfThisComputerIsRecognised() throws {
    let own = LocalAddress.all().map { "http://\($0.isIPv6 ? "[\($0.text)]" : $0.text):8080/in/" }
    for text in ["http://127.0.0.1:8080/", "http://localhost/in/", "http://[::1]:8080/"] + own {
      #expect(OwnAddress.contains(try #require(HTTPURL(text))), "\(text)")
    }
    for text in ["http://192.0.2.1/", "http://nas.example/", "http://[2001:db8::1]/"] {
      #expect(!OwnAddress.contains(try #require(HTTPURL(text))), "\(text)")
    }
  }
}
