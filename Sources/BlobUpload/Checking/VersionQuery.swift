import BlobHTTP
import Blobs
import Synchronization

/// Whether a server takes the method QUERY.
final class QueryMethod: Sendable {
  private let state = Mutex<Bool?>(nil)
  /// How long the first request, for which the server reads no file, may have no response.
  let patience: Duration

  init(patience: Duration = .seconds(30)) { self.patience = patience }

  /// nil: it was not asked yet.
  var isTaken: Bool? { state.withLock { $0 } }

  /// A server that has taken it once may be busy later.
  func note(isTaken: Bool) { state.withLock { $0 = $0 == true ? true : isTaken } }

  /// A request had no response in time. Another one would cost as much time.
  func noteSilence() { state.withLock { $0 = false } }
}

/// Asks a Fullbore server for the versions and digests of many files in one request, the method QUERY. See `docs/serving.md`.
struct VersionQuery: Sendable {
  /// A file or folder that is asked for.
  struct Question: Sendable {
    /// Relative to the destination's folder, percent-encoded. Ends in a slash for a folder; `./` is the destination's own.
    var name: String
    /// The version of the file that needs no digest, because it was compared before; nil: there is none.
    var known: String?
  }
  enum Answer: Sendable, Hashable {
    case file(RemoteFile)
    /// A folder, and the number of files in it whose names do not begin with a dot.
    case folder(files: Int)
    case nothing
    /// The server does not tell, with this status.
    case refused(Int)
  }
  /// The most questions of a request, and the most bytes of them.
  static let (most, mostBytes) = (1000, 512 << 10)
  private static let versions = "application/vnd.fullbore.versions"

  /// The algorithm of the digests that the server tells too; nil: it tells none.
  let algorithm: DigestAlgorithm?
  /// The server reads every file for this, although it may know its digest.
  let isAnew: Bool
  private let method: QueryMethod

  /// `method`: what is known of the server.
  init(_ algorithm: DigestAlgorithm?, isAnew: Bool, _ method: QueryMethod) {
    (self.algorithm, self.isAnew, self.method) = (algorithm, isAnew, method)
  }

  /// The answers in the order of the questions; nil: the server does not take such questions, or not now.
  func ask(_ questions: [Question], at folder: HTTPURL, _ with: UploadContext) async throws(UploadError) -> [Answer]? {
    if method.isTaken == nil, algorithm != nil, let first = questions.first {
      _ = try await VersionQuery(nil, isAnew: false, method).ask([Question(name: first.name)], at: folder, with)
    }
    if method.isTaken == false { return nil }
    var answers: [Answer] = []
    while answers.count < questions.count {
      let lines = Self.lines(questions[answers.count...])
      var request = HTTPRequest("QUERY", folder, ["Content-Type": QueryOffer.names])
      if let algorithm { request.headers["Want-Repr-Digest"] = DigestField.wish(algorithm) }
      if isAnew { request.headers["Cache-Control"] = "no-cache" }
      guard let response = try await send(&request, lines.text, with) else { return nil }
      let refusal = UploadError(request, response)
      if response.refusesAll || [429, 503].contains(response.status) { throw refusal }
      guard response.status == 200, response.headers["Content-Type"] == Self.versions else {
        method.note(isTaken: false)
        return nil
      }
      method.note(isTaken: true)
      let told = response.body.split(separator: UInt8(ascii: "\n")).prefix(lines.count).map { answer($0) }
      if told.isEmpty { return nil }
      answers += told
    }
    return answers
  }

  /// nil: there was no response in time, as behind a firewall that knows no such method.
  private func send(
    _ request: inout HTTPRequest, _ text: [UInt8], _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse? {
    let body = BlobSlice(DataSource(text))
    do throws(UploadError) {
      if method.isTaken != nil { return try await with.send(following: &request, body: body) }
      let answered = try await first(request, body, with)
      if let answered {
        request = answered.request
        return answered.response
      }
    } catch {
      if (error.cause as? TransportError)?.code != .timeout { throw error }
    }
    method.noteSilence()
    return nil
  }

  private typealias Answered = (request: HTTPRequest, response: HTTPResponse)

  /// Sends the first request. nil: it was sent, and no response has come within the patience for it.
  private func first(
    _ request: HTTPRequest, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> Answered? {
    let sent = Monitor<SuspendingClock.Instant?>(nil)
    let on = Exchange(sent: { _ in sent.update { $0 = $0 ?? SuspendingClock.now } })
    let result = await withTaskGroup(of: Result<Answered?, UploadError>.self) { group in
      group.addTask {
        var request = request
        do throws(UploadError) {
          let response = try await with.send(following: &request, body: body, on)
          return .success((request: request, response: response))
        } catch {
          return .failure(error)
        }
      }
      group.addTask { [method] in
        while (try? await Task.sleep(for: min(method.patience, .milliseconds(250)))) != nil {
          // Another request, for whose connection this one may wait, has waited long enough for both.
          if method.isTaken == false { return .success(nil) }
          if let began = sent.update({ $0 }), SuspendingClock.now - began >= method.patience { return .success(nil) }
        }
        return .failure(UploadError(.giveUp, .cancelled, "\(request.method) \(request.url): cancelled"))
      }
      let result = await group.next()!
      group.cancelAll()
      return result
    }
    return try result.get()
  }

  private static func lines(_ questions: ArraySlice<Question>) -> (text: [UInt8], count: Int) {
    var (text, count): ([UInt8], Int) = ([], 0)
    for question in questions.prefix(most) {
      let line = "\(question.name)\(question.known.map { " \($0)" } ?? "")\n"
      if count > 0, text.count + line.utf8.count > mostBytes { break }
      text += line.utf8
      count += 1
    }
    return (text, count)
  }

  private func answer(_ line: ArraySlice<UInt8>) -> Answer {
    let words = String(decoding: line, as: UTF8.self).split(separator: " ")
    switch words.first {
    case "none": return .nothing
    case "folder": if words.count == 2, let files = Int(words[1]), files >= 0 { return .folder(files: files) }
    case "file":
      guard words.count == 4, let length = Int64(digits: words[1]) else { break }
      var file = RemoteFile(length: length, version: String(words[2]))
      if words[3] != "-", let algorithm, let told = DigestField.values(String(words[3]), [algorithm])?[algorithm] {
        file.digest = DigestValue(algorithm, told)
      }
      return .file(file)
    default: break
    }
    return .refused(words.count > 1 ? Int(words[1]) ?? 500 : 500)
  }
}
