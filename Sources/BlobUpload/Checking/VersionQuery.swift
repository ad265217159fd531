import BlobHTTP
import Blobs
import Synchronization

/// Asks a Fullbore server for the versions and digests of many files in one request, the method QUERY. See `docs/serving.md`.
final class VersionQuery: Sendable {
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
  private static let (names, versions) = ("application/vnd.fullbore.names", "application/vnd.fullbore.versions")

  /// The server tells digests too.
  let wantsDigests: Bool
  /// The server reads every file for this, although it may know its digest.
  let isAnew: Bool
  private let isSpoken = Mutex<Bool?>(nil)

  init(wantsDigests: Bool, isAnew: Bool) { (self.wantsDigests, self.isAnew) = (wantsDigests, isAnew) }

  /// The answers in the order of the questions; nil: the server does not take such questions, or not now.
  func ask(_ questions: [Question], at folder: HTTPURL, _ with: UploadContext) async throws(UploadError) -> [Answer]? {
    if isSpoken.withLock({ $0 }) == false { return nil }
    var answers: [Answer] = []
    while answers.count < questions.count {
      let lines = Self.lines(questions[answers.count...])
      var request = HTTPRequest("QUERY", folder, ["Content-Type": Self.names])
      if wantsDigests { request.headers["Want-Repr-Digest"] = "sha-256=1" }
      if isAnew { request.headers["Cache-Control"] = "no-cache" }
      let response = try await with.send(following: &request, body: BlobSlice(DataSource(lines.text)))
      let refusal = UploadError(request, response)
      if response.refusesAll || [429, 503].contains(response.status) { throw refusal }
      guard response.status == 200, response.headers["Content-Type"] == Self.versions else {
        isSpoken.withLock { $0 = $0 ?? false }
        return nil
      }
      isSpoken.withLock { $0 = true }
      let told = response.body.split(separator: UInt8(ascii: "\n")).prefix(lines.count).map { Self.answer($0) }
      if told.isEmpty { return nil }
      answers += told
    }
    return answers
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

  private static func answer(_ line: ArraySlice<UInt8>) -> Answer {
    let words = String(decoding: line, as: UTF8.self).split(separator: " ")
    switch words.first {
    case "none": return .nothing
    case "folder": if words.count == 2, let files = Int(words[1]), files >= 0 { return .folder(files: files) }
    case "file":
      guard words.count == 4, let length = Int64(digits: words[1]) else { break }
      let digest = words[3] == "-" ? nil : DigestField.values(String(words[3]))?[.sha256]
      return .file(RemoteFile(length: length, version: String(words[2]), sha256: digest))
    default: break
    }
    return .refused(words.count > 1 ? Int(words[1]) ?? 500 : 500)
  }
}
