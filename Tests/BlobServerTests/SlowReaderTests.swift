@testable import BlobServer
import Blobs
import Platform
import Synchronization
import Testing

/// Responses to clients that read them late, or not at all.
struct SlowReaderTests {
  private func pair() throws -> (server: Descriptor, client: Descriptor) {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    return (Descriptor(ends[0]), Descriptor(ends[1]))
  }

  /// Fills the socket's buffer, so that no byte of a response can be sent.
  private func fill(_ socket: Descriptor) -> Int {
    let bytes = [UInt8](repeating: 0, count: 4096)
    var sum = 0
    while true {
      let count = send(socket.number, bytes, bytes.count, Int32(MSG_DONTWAIT))
      if count <= 0 { return sum }
      sum += count
    }
  }

  private func read(_ socket: Descriptor, _ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = recv(socket.number, &bytes[done], count - done, 0)
      if got <= 0 { break }
      done += got
    }
    return Array(bytes[..<done])
  }

  @Test func anAnswerWaitsForItsSocket() throws {
    let (server, client) = try pair()
    let filled = fill(server)
    let answer = pattern(1_000_000)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
    defer { room.deallocate() }
    var writer = ResponseWriter(ClientStream(server, nil))
    writer.add(Array(answer[..<500_000]))
    writer.add(Array(answer[500_000...]))
    #expect(writer.flush(through: room) == .blocked)
    #expect(read(client, filled).count == filled)
    var got: [UInt8] = []
    while writer.flush(through: room) == .blocked { got += read(client, 10_000) }
    #expect(got + read(client, answer.count - got.count) == answer)
    #expect(writer.isEmpty)
  }

  @Test func anAnswerThatNobodyCanTakeIsGivenUp() throws {
    let (server, client) = try pair()
    shutdown(client.number, Int32(SHUT_RDWR))
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
    defer { room.deallocate() }
    var writer = ResponseWriter(ClientStream(server, nil))
    writer.add([1, 2, 3])
    #expect(writer.flush(through: room) == .broken)
  }

  /// No response may be lost, because the next one would then be taken for it.
  @Test func everyPipelinedRequestHasItsAnswer() throws {
    let server = try TestServer()
    let body = pattern(300_000)
    server.folder.write("taken", [UInt8](repeating: 1, count: body.count))
    server.folder.write("big", [1])
    #expect(server.folder.extend("big", to: 64 << 20))
    let client = try server.client()
    try client.head("GET", "/big")
    let writer = Monitor(false)
    let count = 100
    let put = Array("PUT /taken HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
    // One thread writes to the socket while another reads, which sockets permit.
    nonisolated(unsafe) let sender = client
    SystemThread.start("writer") {
      for _ in 0..<count { try? sender.send(put) }
      writer.update { $0 = true }
    }
    #expect(try client.answer().body.count == 64 << 20)
    for _ in 0..<count { #expect(try client.answer().status == 409) }
    writer.wait { $0 ? () : nil }
    #expect(try client.ask("HEAD", "/big").status == 200)
  }
}
