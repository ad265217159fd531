import Platform
@testable import BlobClient
@testable import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@Suite struct FormTests {
  let transport = SocketTransport()

  // MARK: Written bytes

  @Test func namesAreQuotedAsBrowsersDo() throws {
    var form = MultipartForm(boundary: "B")
    form.appendPart([1], name: "a\"b", fileName: "x\r\n\"y\\ ü🎬.mov")
    let text = try read(form)
    #expect(text.contains("form-data; name=\"a%22b\"; filename=\"x%0D%0A%22y\\ ü🎬.mov\"\r\n"))
    #expect(text.contains("\r\nContent-Type: application/octet-stream\r\n"))
  }

  @Test func fileNameNeedNotBeUTF8() throws {
    var form = MultipartForm(boundary: "B")
    form.append(FormPart(DataSource("x"), name: Array("f".utf8), fileName: [0x61, 0xFF, 0x22]))
    let bytes = try read(BlobSlice(form))
    #expect(bytes.firstRange(of: Array("filename=\"a".utf8) + [0xFF] + Array("%22\"\r\n".utf8)) != nil)
  }

  @Test func partsHaveHeadersOfTheirOwn() throws {
    var form = MultipartForm(boundary: "B")
    form.appendPart([1], name: "f", headers: ["X-Hash": "abc"])
    form.appendPart([2], name: "g", fileName: "g", mimeType: "text/plain", headers: ["Content-Type": "text/csv"])
    let text = try read(form)
    #expect(text.contains("name=\"f\"\r\nX-Hash: abc\r\n\r\n"))
    #expect(text.contains("name=\"g\"; filename=\"g\"\r\nContent-Type: text/csv\r\n\r\n"))
  }

  @Test(arguments: [("X", "a\r\nEvil: 1"), ("X\r\nEvil", "1"), ("", "1"), ("content-disposition", "attachment")])
  func headersThatWouldBreakThePartAreRefused(_ name: String, _ value: String) {
    var form = MultipartForm()
    form.appendPart([1], name: "f", headers: [name: value])
    #expect(failure { () throws(BlobError) in try read(BlobSlice(form)) }?.code == .unsupported)
    #expect(failure { () throws(BlobError) in _ = try form.info(Cancellation()) }?.code == .unsupported)
  }

  @Test func mimeTypeCannotSmuggleAHeader() {
    var form = MultipartForm()
    form.appendPart([1], name: "f", fileName: "f", mimeType: "text/plain\r\nEvil: 1")
    #expect(failure { () throws(BlobError) in try read(BlobSlice(form)) }?.code == .unsupported)
  }

  @Test func boundariesAreNeverTheSame() {
    let boundaries = Set((0..<1000).map { _ in MultipartForm().boundary })
    #expect(boundaries.count == 1000)
    #expect(boundaries.allSatisfy { $0.utf8.count == 41 })
    #expect(MultipartForm().contentType.hasPrefix("multipart/form-data; boundary=fullbore-"))
    #expect(MultipartForm(boundary: "a b").contentType == "multipart/form-data; boundary=\"a b\"")
  }

  // MARK: Versions

  @Test func anotherVersionOfAnyPartIsAnotherForm() throws {
    func validator(_ boundary: String = "B", _ title: String = "Trip", seed: UInt64 = 1, name: String = "a")
      throws -> Validator?
    {
      var form = MultipartForm(boundary: boundary)
      form.appendField(title, name: "title")
      form.appendPart(PatternSource(length: 10, seed: seed), name: "file", fileName: name)
      return try form.info(Cancellation()).validator
    }
    let all = try [
      validator(), validator("C"), validator(seed: 2), validator("B", "Trap"), validator(name: "b"),
    ]
    #expect(Set(all).count == 5 && !all.contains(nil))
    #expect(try validator() == all[0])
    var form = MultipartForm()
    form.appendPart(PatternSource(length: 1), name: "a")
    form.appendPart(ListSource(pieces: [[1]], length: 1), name: "b")
    #expect(try form.info(Cancellation()).validator == nil, "a part that cannot tell its versions")
  }

  @Test func partThatChangesIsNeverMixed() throws {
    let (old, new) = (PatternSource(length: 100_000, seed: 1), PatternSource(length: 100_000, seed: 2))
    var form = MultipartForm()
    form.appendPart(FaultySource(old, .replaced(by: new, from: 2)), name: "file", fileName: "a")
    let info = try form.info(Cancellation())
    _ = try read(BlobSlice(form, validator: info.validator))
    let again = failure { () throws(BlobError) in
      _ = try read(BlobSlice(form, start: 50_000, validator: info.validator))
    }
    #expect(again?.code == .changed)
  }

  // MARK: Lengths

  @Test(arguments: [9, 11])
  func partWithoutTheLengthThatWasDeclaredFailsTheBody(_ declared: Int64) throws {
    for knowsLength in [true, false] {
      var form = MultipartForm()
      let source = PatternSource(length: 10, knowsLength: knowsLength)
      form.appendPart(source, name: "film", fileName: "a", length: declared)
      let error = failure { () throws(BlobError) in _ = try read(BlobSlice(form)) }
      #expect(error?.code == (declared > 10 ? .truncated : .changed))
      #expect(error?.message.contains("form part \"film\"") == true, "\(error?.message ?? "")")
    }
  }

  @Test func declaredLengthsMakeTheWholeLengthKnown() throws {
    var form = MultipartForm()
    form.appendPart(PatternSource(length: 5000, knowsLength: false), name: "film", fileName: "a", length: 5000)
    let length = try #require(try form.info(Cancellation()).length)
    #expect(Int64(try read(BlobSlice(form)).count) == length)
  }

  @Test func partThatCannotBeReadIsNamed() {
    var form = MultipartForm()
    form.appendField("x", name: "title")
    form.appendPart(
      FaultySource(PatternSource(length: 10), .fail(at: 5, BlobError(.io, "the card was pulled out"))), name: "film")
    let error = failure { () throws(BlobError) in _ = try read(BlobSlice(form)) }
    #expect(error?.message == "form part \"film\": the card was pulled out")
  }

  /// The file existed when the length was computed.
  @Test func partThatIsGoneInTheMiddleEndsTheFormThere() async throws {
    let peer = ScriptedPeer([.readHead, .read(300_000), .discard])
    var form = MultipartForm()
    form.appendPart(PatternSource(length: 300_000), name: "first", fileName: "a.jpg")
    let gone = BlobError(.notFound, "open b.jpg: No such file or directory")
    form.appendPart(FaultySource(PatternSource(length: 10), .failOpening(gone)), name: "second", fileName: "b.jpg")
    let error = await failure { [form] () async throws(TransportError) in
      try await SocketTransport().send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    }
    #expect(error.code == .source && error.cause?.code == .notFound, "\(error)")
    #expect(error.message.contains("form part \"second\": open b.jpg"), "\(error)")
    await peer.wait { $0.ended == 1 }
    let sent = String(decoding: peer.body(), as: UTF8.self)
    #expect(!sent.contains("--\(form.boundary)--"), "what was sent is no whole form")
  }

  // MARK: On the wire

  @Test(arguments: [100, 3_000_001])
  func formArrivesWithItsExactLength(_ size: Int) async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let form = film(PatternSource(length: Int64(size)))
    let length = try form.info(Cancellation()).length
    let response = try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    #expect(response.status == 200)
    #expect(peer.heads.hasPrefix("POST /a HTTP/1.1\r\n"))
    #expect(peer.heads.contains("\r\nContent-Type: multipart/form-data; boundary=\(form.boundary)\r\n"))
    #expect(peer.heads.contains("\r\nContent-Length: \(length ?? -1)\r\n"))
    #expect(peer.body() == (try read(BlobSlice(form))))
  }

  @Test func formOfUnknownLengthGoesInChunks() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let form = film(PatternSource(length: 200_000, knowsLength: false))
    _ = try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    #expect(peer.heads.contains("\r\nTransfer-Encoding: chunked\r\n"))
  }

  @Test func sameFormIsSentAgainWithTheSameBytes() async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .readRequest, answer()])
    let form = film(PatternSource(length: 100_000))
    for _ in 1...2 {
      _ = try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    }
    let seen = peer.seen.received[0]
    #expect(seen.count.isMultiple(of: 2) && seen.prefix(seen.count / 2) == seen.suffix(seen.count / 2))
  }

  @Test func formWithAPipeIsSentOnce() async throws {
    let peer = ScriptedPeer([.readRequest, answer(), .close])
    let pipe = BlobPipe(capacity: 1000)
    let form = film(PipeSource(pipe, length: 5000))
    #expect(form.access == .sequential)
    SystemThread.start("pipe") {
      let bytes = PatternSource(length: 5000).bytes(count: 5000)
      bytes.withUnsafeBytes { bytes in try? pipe.write(bytes) }
      pipe.finish()
    }
    let response = try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    #expect(response.status == 200 && peer.heads.contains("Content-Length"))
    let error = await failure { () async throws(TransportError) in
      try await transport.send(form.request(to: peer.url()), body: BlobSlice(form), Exchange())
    }
    #expect(error.code == .source && error.cause?.code == .outOfRange)
  }

  // MARK: Into a file

  @Test func preparedFormIsTheForm() async throws {
    let folder = try ScratchFolder()
    let form = film(PatternSource(length: 1_000_001))
    let told = Tally()
    let prepared = try await form.prepare(to: folder.path.appending("body")) { written, length in
      if written == length { told.add(1) }
    }
    #expect(folder.read("body") == (try read(BlobSlice(form))))
    #expect(prepared.length == Int64(folder.read("body")?.count ?? 0) && told.value == 1)
    let peer = ScriptedPeer([.readRequest, answer()])
    let request = prepared.request(to: peer.url())
    #expect(request.headers["Content-Type"] == form.contentType)
    #expect(request.headers["Content-Length"] == "\(prepared.length)")
    let response = try await transport.send(request, body: prepared.body, Exchange())
    #expect(response.status == 200 && peer.body() == folder.read("body"))
    #expect(peer.heads.components(of: "Content-Length").count == 2, "it is announced once")
  }

  func film(_ source: any BlobSource) -> MultipartForm {
    var form = MultipartForm()
    form.appendField("Trip", name: "title")
    form.appendPart(source, name: "file", fileName: "film.mov", mimeType: "video/quicktime")
    return form
  }

  func read(_ form: MultipartForm) throws(BlobError) -> String {
    String(decoding: try read(BlobSlice(form)), as: UTF8.self)
  }

  func read(_ slice: BlobSlice) throws(BlobError) -> [UInt8] {
    let reader = try slice.open(Cancellation())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while case let count = try reader.read(into: buffer), count > 0 { bytes += buffer.prefix(count) }
    return bytes
  }
}

func failure<Result>(_ body: () throws(BlobError) -> Result) -> BlobError? {
  do throws(BlobError) {
    _ = try body()
    return nil
  } catch {
    return error
  }
}

func openForWriting(_ path: UnsafePointer<CChar>) -> Int32 { open(path, O_WRONLY | O_CLOEXEC) }

extension String {
  fileprivate func components(of separator: String) -> [String] {
    var parts = [""]
    var rest = self[...]
    while !rest.isEmpty {
      if rest.hasPrefix(separator) {
        parts.append("")
        rest = rest.dropFirst(separator.count)
      } else {
        parts[parts.count - 1].append(rest.removeFirst())
      }
    }
    return parts
  }
}
