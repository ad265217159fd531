import BlobTesting
import Blobs
import Platform
import TestSupport
import Testing

@testable import BlobServer

/// Bodies in very many chunks, and very many requests at once. Other clients must not wait for all of them.
struct SmallChunkTests {
  private static func chunks(of bytes: [UInt8], _ size: () -> Int) -> [UInt8] {
    var text: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let chunk = rest.prefix(size())
      text += Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + [13, 10]
      rest = rest.dropFirst(chunk.count)
    }
    return text + Array("0\r\n\r\n".utf8)
  }

  @Test(arguments: ["PUT", "POST"], [1, 10, 4095, 4097, 100_000])
  func chunksOfAnySizeArriveInOrder(_ method: String, _ most: Int) throws {
    let server = try TestServer()
    let bytes = pattern(min(2_000_000, most * 5000))
    var random = SplitMix64(seed: UInt64(most))
    let client = try server.client()
    let fields = method == "POST" ? ietf(true) : []
    try client.head(method, "/a", fields + [("Transfer-Encoding", "chunked")])
    try client.send(Self.chunks(of: bytes) { Int.random(in: 1...most, using: &random) })
    var answer = try client.readHead()
    while answer.status < 200 { answer = try client.readHead() }
    #expect(answer.status == 201)
    #expect(server.folder.read("a") == bytes)
  }

  #if os(Linux)
    /// Number of write calls of this process.
    private var writes: Int {
      guard let file = fopen("/proc/self/io", "r") else { return 0 }
      defer { fclose(file) }
      var line = [CChar](repeating: 0, count: 100)
      while fgets(&line, 100, file) != nil {
        let text = line.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        if text.hasPrefix("syscw: ") { return Int(text.dropFirst(7).dropLast()) ?? 0 }
      }
      return 0
    }

    @Test func chunksOfOneByteAreWrittenTogether() throws {
      let server = try TestServer()
      let bytes = pattern(200_000)
      let before = writes
      let client = try server.client()
      try client.head("PUT", "/a", [("Transfer-Encoding", "chunked")])
      try client.send(Self.chunks(of: bytes) { 1 })
      #expect(try client.answer().status == 201)
      #expect(server.folder.read("a") == bytes)
      #expect(writes - before < bytes.count / 2)
    }
  #endif

  @Test func allOfManyRequestsAtOnceAreAnswered() throws {
    let server = try TestServer()
    let client = try server.client()
    let count = 3 * ReceivedBytes.mostPieces + 1
    let request = "GET /gone HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try client.send(Array(String(repeating: request, count: count).utf8))
    for _ in 0..<count { #expect(try client.answer().status == 404) }
    #expect(try client.ask("PUT", "/a", body: [1, 2, 3]).status == 201)
  }
}
