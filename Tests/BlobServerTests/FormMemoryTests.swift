import BlobServer
import Blobs
import Platform
import Testing

/// What the server keeps of a form until the form ends.
struct FormMemoryTests {
  private let type = ("Content-Type", "multipart/form-data; boundary=B")

  private func part(_ name: [UInt8]) -> [UInt8] {
    Array("--B\r\nContent-Disposition: form-data; name=f; filename=\"".utf8) + name + Array("\"\r\n\r\nz\r\n".utf8)
  }

  /// Names that are too long for a file can only be refused.
  @Test func longNamesAreNotKept() throws {
    let server = try TestServer()
    let client = try server.client()
    let count = 400
    let body = part([UInt8](repeating: 97, count: 15_500))
    let before = Self.memory()
    try client.head("POST", "/", [type, ("Content-Length", "\(count * body.count + 5)")])
    for _ in 0..<count { try client.send(body) }
    #expect(try eventually { Self.memory() < before + (2 << 20) }, "\((Self.memory() - before) >> 10) KiB")
    try client.send(Array("--B--".utf8))
    let answer = try client.answer()
    #expect(answer.status == 400)
    #expect(answer.text.contains("may not be longer than 255 bytes"))
    #expect(answer.body.count < 500 * count, "\(answer.body.count) bytes")
  }

  /// Each file's place in the answer has the folder's path.
  @Test func longPathsAreNotRepeatedInTheAnswer() throws {
    let server = try TestServer()
    let count = 400
    let folder = "/" + (0..<12).map { _ in String(repeating: "%C3%A4", count: 120) }.joined(separator: "/") + "/"
    var body: [UInt8] = []
    for number in 0..<count { body += part(Array("\(number)".utf8)) }
    let answer = try server.ask("POST", folder, [type], body: body + Array("--B--".utf8))
    #expect(answer.status == 201)
    #expect(answer.text.contains(#""name":"399","status":201"#))
    #expect(answer.body.count < 500 * count, "\(answer.body.count) bytes")
  }

  /// Bytes in use of this process, which includes the server.
  private static func memory() -> Int {
    #if os(Linux)
      let info = mallinfo2()
      return Int(info.uordblks) + Int(info.hblkhd)
    #else
      return 0
    #endif
  }
}
