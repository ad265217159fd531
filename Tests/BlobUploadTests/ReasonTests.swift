import BlobHTTP
import Testing

@testable import BlobUpload

/// Tests how a server's explanation is shown.
@Suite struct ReasonTests {
  private func reason(_ text: String, _ type: String) -> String? {
    HTTPResponse(head: HTTPHead(status: 403, headers: ["Content-Type": type]), body: Array(text.utf8)).reason
  }

  /// Zero-width and directional characters and a soft hyphen would make the shown text differ from the real one.
  @Test(arguments: ["\u{200B}", "\u{202E}", "\u{2066}", "\u{FEFF}", "\u{AD}", "\u{2028}"])
  func invisibleCharactersAreBlanks(_ character: String) {
    #expect(reason("no\(character)room", "text/plain") == (character == "\u{2028}" ? "no" : "no room"))
    #expect(reason("<Error><Message>no\(character)room</Message></Error>", "application/xml") == "no room")
    #expect(reason(character, "text/plain") == nil)
  }
}
