import BlobHTTP
import BlobTesting
import Blobs
import CCurl
import Testing

#if canImport(Glibc)
  import CLinux
  import Glibc

  /// Holds what docs/decisions/zero-copy.md says: the seam admits a transport that copies no byte of the body.
  @Suite struct ZeroCopyTrial {
    @Test func aBodyTravelsFromFileToSocketWithoutBeingRead() async throws {
      let file = try TemporaryFile(PatternSource(length: 5_000_000, seed: 4))
      let peer = ScriptedPeer([.readRequest, answer("201 Created", "", "ETag: \"z\"\r\n")])
      let slice = BlobSlice(FileSource(BytePath(file.path)), start: 1_000_000, length: 3_500_000)
      let response = try await SendfileTransport().send(HTTPRequest("PUT", peer.url()), body: slice, Exchange())
      #expect(response.status == 201 && response.headers["ETag"] == "\"z\"")
      #expect(peer.body() == PatternSource(length: 5_000_000, seed: 4).bytes(at: 1_000_000, count: 3_500_000))
    }

    /// FULLBORE_ZERO_COPY="http://127.0.0.1:PORT/x FILE" compares the costs against a server that discards.
    @Test func whatItSaves() async throws {
      guard let setting = getenv("FULLBORE_ZERO_COPY").map({ String(cString: $0) }) else { return }
      let parts = setting.split(separator: " ").map(String.init)
      let url = try #require(HTTPURL(parts[0]))
      let source = FileSource(BytePath(parts[1]))
      let length = try #require(try source.info(Cancellation()).length)
      let transports: [(String, any Transport)] = [("lanes", CurlTransport()), ("sendfile", SendfileTransport())]
      for (name, transport) in transports + transports + transports {
        let start = cpuSeconds()
        _ = try await transport.put(url, source, length: length)
        print("\(name): \((cpuSeconds() - start) / Double(length) * 1e9) CPU s/GB")
      }
    }
  }

  /// One request over a connection that libcurl made: a head, `sendfile`, the answer. Plain HTTP only.
  private struct SendfileTransport: Transport {
    func send(
      _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
    ) async throws(TransportError) -> HTTPResponse {
      let result: Result<HTTPResponse, TransportError> = await withCheckedContinuation { done in
        SystemThread.start("sendfile") {
          done.resume(returning: Result { () throws(TransportError) in try exchange(request, body!) })
        }
      }
      return try result.get()
    }

    private func exchange(_ request: HTTPRequest, _ body: BlobSlice) throws(TransportError) -> HTTPResponse {
      let easy = curl_easy_init()!
      defer { curl_easy_cleanup(easy) }
      fb_curl_set_string(easy, CURLOPT_URL, request.url.text)
      fb_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
      fb_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
      var socket: curl_socket_t = -1
      guard curl_easy_perform(easy) == CURLE_OK, fb_curl_get_socket(easy, &socket) == CURLE_OK else {
        throw TransportError(.connect, "no connection")
      }
      do {
        let reader = try body.open(Cancellation())
        guard let region = reader.fileRegion(), let length = reader.info.length else {
          throw TransportError(.badRequest, "the source is no file")
        }
        let head = "\(request.method) \(request.url.path) HTTP/1.1\r\nHost: \(request.url.host)\r\n"
        push(socket, Array("\(head)Content-Length: \(length)\r\n\r\n".utf8))
        // As `read` does it: the last byte leaves only when the content is still the same.
        guard splice(region, 0..<length - 1, socket) else { throw TransportError(.broken, "sendfile: \(errno)") }
        try reader.finish()
        guard splice(region, length - 1..<length, socket) else { throw TransportError(.broken, "sendfile: \(errno)") }
      } catch let error as BlobError {
        throw TransportError(.source, error.message, cause: error)
      } catch {
        throw error as! TransportError  // nothing else is thrown above
      }
      return try receive(socket)
    }

    /// The socket is libcurl's, and does not block.
    private func splice(_ region: FileRegion, _ range: Range<Int64>, _ socket: curl_socket_t) -> Bool {
      var offset = off_t(region.offset + range.lowerBound)
      let end = off_t(region.offset + range.upperBound)
      while offset < end {
        let count = sendfile(socket, region.descriptor, &offset, Int(end - offset))
        if count < 0 && errno == EAGAIN { wait(socket, POLLOUT) } else if count <= 0 { return false }
      }
      return true
    }

    private func push(_ socket: curl_socket_t, _ bytes: [UInt8]) {
      _ = bytes.withUnsafeBytes { Loopback.write(socket, $0) }
    }

    private func receive(_ socket: curl_socket_t) throws(TransportError) -> HTTPResponse {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while !String(decoding: bytes, as: UTF8.self).contains("\r\n\r\n") {
        wait(socket, POLLIN)
        let count = recv(socket, &buffer, buffer.count, 0)
        if count <= 0 { throw TransportError(.broken, "no answer") }
        bytes += buffer[..<count]
      }
      let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
      var headers = HTTPHeaders()
      for line in lines.dropFirst() {
        let parts = line.split(separator: ":", maxSplits: 1)
        headers.add(String(parts[0]), parts[1].trimmed)
      }
      return HTTPResponse(head: HTTPHead(status: Int(lines[0].split(separator: " ")[1])!, headers: headers))
    }

    private func wait(_ socket: curl_socket_t, _ events: Int32) {
      var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
      poll(&entry, 1, -1)
    }
  }

  private func cpuSeconds() -> Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
  }

  /// A file with the bytes of a pattern, deleted with its owner.
  private final class TemporaryFile {
    let path: String

    init(_ source: PatternSource) throws {
      var template = Array("/tmp/fullbore-zero-copy-XXXXXX".utf8CString)
      let descriptor = mkstemp(&template)
      try #require(descriptor >= 0)
      defer { close(descriptor) }
      path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
      let bytes = source.bytes(count: Int(source.length))
      let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      try #require(written == bytes.count)
    }

    deinit { unlink(path) }
  }
#endif
