import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

extension ProtocolCheck {
  /// Random faults on every connection. In the end every byte must be right, no incomplete file may ever have been
  /// published, and no acknowledged byte may have been sent again. The same seed causes the same faults at the same
  /// bytes.
  ///
  /// - `pipes`: the sources can be read only once and have no known length.
  public static func chaos(seed: UInt64, pipes: Bool = false) -> ProtocolCheck {
    ProtocolCheck("survives chaos of \(pipes ? "pipes, " : "")seed \(seed)") { exam in
      try await survives(seed, pipes: pipes, exam)
    }
  }

  private static func survives(_ seed: UInt64, pipes: Bool, _ exam: ProtocolCheckContext) async throws {
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let proxy = ChaosProxy(
      to: exam.peer.endpoint.port,
      ChaosProxy.Schedule(seed: seed, count: 24, span: 600_000, longest: .milliseconds(10)))
    let patterns = (0..<5).map { number in
      PatternSource(length: Int64(truncatingIfNeeded: (seed &+ number) &* 0x9E37_79B9 % 900_000), seed: seed &+ number)
    }
    // The first round has few retries: some uploads give up and leave an unfinished upload.
    for retries in [1, 60] {
      let watch = AcknowledgedOnce(exam.transport)
      var uploader = exam.uploader(over: watch, through: proxy, journal, retries: retries)
      // Without resumption the spool must hold the whole source.
      if pipes { uploader.spool.memory = exam.fixture.resumes ? 200_000 : 1 << 20 }
      let failures = await send(patterns.map { pipes ? $0.piped : $0 }, uploader)
      try require(watch.repeated.isEmpty, "sent again: \(watch.repeated)")
      for (number, pattern) in patterns.enumerated() {
        if failures[number] != nil {
          // The upload may have succeeded although its response was lost.
          let isThere = await exam.ask { $0.contents(of: BytePath("\(number)")) != nil }
          if !isThere { continue }
        }
        try await exam.expect(pattern, at: BytePath("\(number)"))
      }
      if retries > 1 {
        let list = failures.sorted { $0.key < $1.key }.map {
          "\($0.key) of \(patterns[$0.key].length) bytes: \($0.value)"
        }
        try require(failures.isEmpty, "failed: \(list.joined(separator: "; "))")
      }
    }
    let names = await exam.ask { $0.names() }
    try require(names.count == patterns.count, "published were \(names)")
    await journal.close()
  }

  /// Uploads all patterns concurrently. Returns the errors by the pattern's number.
  private static func send(_ patterns: [PatternSource], _ uploader: Uploader) async -> [Int: UploadError] {
    await withTaskGroup(of: (Int, UploadError)?.self) { group in
      for (number, pattern) in patterns.enumerated() {
        group.addTask {
          do throws(UploadError) {
            _ = try await uploader.upload(pattern, as: BytePath("\(number)"))
            return nil
          } catch {
            return (number, error)
          }
        }
      }
      return await group.reduce(into: [:]) { failed, one in if let one { failed[one.0] = one.1 } }
    }
  }
}

extension PatternSource {
  /// The same bytes as a sequential source of unknown length.
  fileprivate var piped: PatternSource {
    PatternSource(length: length, seed: seed, access: .sequential, knowsLength: false)
  }
}

/// Checks that bytes appended to an upload do not start before the acknowledged offset.
private final class AcknowledgedOnce: Transport {
  private let transport: any Transport
  private let state = Mutex<(acknowledged: [String: Int64], repeated: [String])>(([:], []))

  init(_ transport: any Transport) { self.transport = transport }

  /// Appends that started before the acknowledged offset.
  var repeated: [String] { state.withLock { $0.repeated } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let upload = request.url.text
    if request.method == "PATCH", let offset = Self.offset(request.headers) {
      state.withLock { state in
        guard let known = state.acknowledged[upload], offset < known else { return }
        state.repeated.append("\(upload) from byte \(offset) on, with \(known) acknowledged")
      }
    }
    var on = on
    on.interim = { [weak self, forward = on.interim] head in
      self?.note(head.headers, of: upload)
      forward(head)
    }
    let answer = try await transport.send(request, body: body, on)
    if answer.isSuccess { note(answer.headers, of: upload) }
    return answer
  }

  private func note(_ headers: HTTPHeaders, of upload: String) {
    guard let offset = Self.offset(headers) else { return }
    state.withLock { $0.acknowledged[upload] = max(offset, $0.acknowledged[upload] ?? 0) }
  }

  private static func offset(_ headers: HTTPHeaders) -> Int64? { headers["Upload-Offset"].flatMap { Int64($0) } }
}
