import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient

@testable import BlobHTTP

#if os(Linux)
  import Platform

  /// Forms whose file is sent with `sendfile`; the parts around it are read.
  @Suite struct FormLendingTests {
    private let transport = SocketTransport()
    /// The size of a file of which `sendfile` sends the minimum and 1 MiB more.
    private static let size = Int(SendfileBody.queues + SendfileBody.least + 1 << 20)
    private let pattern = PatternSource(length: Int64(FormLendingTests.size), seed: 12)

    private func makeForm(_ files: (any BlobSource)...) throws -> (form: MultipartForm, length: Int) {
      var form = MultipartForm(boundary: "B")
      form.appendField("Trip", name: "title")
      for (number, file) in files.enumerated() {
        form.appendPart(file, name: "file", fileName: "\(number).mov", mimeType: "video/quicktime")
      }
      return (form, Int(try #require(try form.info(Cancellation()).length)))
    }

    private func expected(_ contents: [UInt8]...) -> [UInt8] {
      var bytes = Array("--B\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nTrip".utf8)
      for (number, content) in contents.enumerated() {
        bytes += Array("\r\n--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(number).mov\"\r\n".utf8)
        bytes += Array("Content-Type: video/quicktime\r\n\r\n".utf8) + content
      }
      return bytes + Array("\r\n--B--\r\n".utf8)
    }

    private func post(
      _ form: MultipartForm, to peer: ScriptedPeer, _ on: Exchange = Exchange()
    ) async throws(TransportError) -> HTTPResponse {
      try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), on)
    }

    @Test func aFormIsSentWholeByReadingLittleOfItsFile() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
      let (sent, read) = (Tally(), Tally())
      let (form, length) = try makeForm(Lender(file, read))
      for _ in 0..<2 {
        #expect(try await post(form, to: peer, Exchange(sent: { sent.add($0) })).status == 200)
      }
      #expect(peer.seen.received.count == 1, "the connection is kept")
      let wanted = expected(pattern.bytes(count: Self.size))
      #expect(wanted.count == length && Array(peer.body().prefix(length)) == wanted)
      #expect(sent.value == 2 * length)
      #expect(read.value == 2 * Int(SendfileBody.queues), "the file's last bytes alone are read")
      #expect(peer.heads.contains("\r\nContent-Length: \(length)\r\n"))
    }

    @Test func theLongerOfTwoFilesIsSentBySendfile() async throws {
      let (long, short) = (try TemporaryFile(pattern), PatternSource(length: 100_000, seed: 13))
      let peer = ScriptedPeer([.readRequest, answer()])
      let read = Tally()
      let (form, length) = try makeForm(short, Lender(long, read), short)
      #expect(try await post(form, to: peer).status == 200)
      let bytes = short.bytes(count: 100_000)
      #expect(peer.body() == expected(bytes, pattern.bytes(count: Self.size), bytes) && peer.body().count == length)
      #expect(read.value == Int(SendfileBody.queues))
    }

    @Test func aFormThatFillsUpWithSmallFilesIsRead() async throws {
      let small = PatternSource(length: SendfileBody.least, seed: 14)
      let file = try TemporaryFile(small)
      let count = (Self.size >> 22) + 1
      let peer = ScriptedPeer([.readRequest, answer()])
      let read = Tally()
      var form = MultipartForm(boundary: "B")
      for _ in 0..<count { form.appendPart(Lender(file, read), name: "f") }
      #expect(try await post(form, to: peer).status == 200)
      #expect(read.value == count << 22)
    }

    @Test(arguments: FileChange.allCases)
    func aFileThatChangesWhileItIsLentNeverLooksComplete(_ change: FileChange) async throws {
      let file = try TemporaryFile(pattern)
      let (form, length) = try makeForm(FileSource(BytePath(file.path)))
      let peer = ScriptedPeer([.readHead, .hold, .read(length - 20), answer()])
      let task = Task { try await post(form, to: peer) }
      await peer.wait { $0.steps == [1] }
      try file.undergo(change, pattern)
      peer.release()
      let error = await #expect(throws: TransportError.self) { try await task.value }
      #expect(error?.code == .source && error?.cause?.code == .changed, "\(String(describing: error))")
      await peer.wait { $0.ended == 1 }
      #expect(peer.seen.steps == [2], "neither the file's last byte nor the form's end has come")
    }

    /// The reused connection looks alive and closes once the request has arrived: a form is not sent twice.
    @Test func aFormIsNotSentTwiceIfAReusedConnectionBreaks() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
      _ = try await transport.get(peer.url())
      let (form, _) = try makeForm(FileSource(BytePath(file.path)))
      let error = await failure { () async throws(TransportError) in try await post(form, to: peer) }
      #expect(error.code == .broken, "\(error)")
    }

    /// A PUT may be sent twice: the body starts again with its first byte.
    @Test func onAnotherConnectionItBeginsAnew() async throws {
      let file = try TemporaryFile(pattern)
      let peer = ScriptedPeer([.readRequest, answer(), .readHead, .read(1 << 20), .close], [.readRequest, answer()])
      _ = try await transport.get(peer.url())
      let (form, _) = try makeForm(FileSource(BytePath(file.path)))
      let response = try await transport.send(
        form.request(to: peer.url(), method: "PUT"), body: BlobSlice(form), Exchange())
      #expect(response.status == 200)
      #expect(peer.body(1) == expected(pattern.bytes(count: Self.size)))
    }
  }
#endif
