import BlobHTTP
import Blobs
import Synchronization

/// Whether a success to a PUT means that the body was stored. Some servers answer every request with a page, or with an
/// empty success, and a host may have such a server behind one path and a good one behind another. So each folder that
/// files go to is found out about by itself.
final class PutAnswers: Sendable {
  /// The answers to PUTs into one folder.
  private final class Folder: Sendable {
    let isTrusted = Atomic(false)
    /// One file at a time is asked for.
    let gate = Gate(1)
  }
  private let folders = Mutex<[Substring: Folder]>([:])
  /// Beyond so many, all are forgotten: one file of each is asked for again.
  private static let mostFolders = 1000

  private func folder(of url: HTTPURL) -> Folder {
    // Small files ask for this, so nothing is allocated for a folder that is known.
    var path = url.path
    let slash = path.withUTF8 { $0.lastIndex(of: UInt8(ascii: "/")) } ?? 0
    let place = path[..<path.utf8.index(path.utf8.startIndex, offsetBy: slash)]
    return folders.withLock { folders in
      if let folder = folders[place] { return folder }
      if folders.count >= Self.mostFolders { folders.removeAll() }
      let folder = Folder()
      folders[Substring(String(place))] = folder
      return folder
    }
  }

  /// A file was found where it was put: the successes to PUTs into the folder of `url` are true.
  func trust(folderOf url: HTTPURL) { folder(of: url).isTrusted.store(true, ordering: .relaxed) }

  /// Whether `response`, a success, is known to be true: the answer shows it, or an earlier file of the same folder.
  func isTrusted(after request: HTTPRequest, _ response: HTTPResponse) -> Bool {
    folder(of: request.url).isTrusted.load(ordering: .relaxed) || Self.provesStorage(request, response)
  }

  /// Whether the answer itself shows that a server has stored the file. A server repeats `X-OC-MTime` as `accepted` once
  /// it has set the modification time of what it stored, and nobody else knows that field.
  private static func provesStorage(_ request: HTTPRequest, _ response: HTTPResponse) -> Bool {
    response.headers[ModificationTime.field]?.isSameField("accepted") == true
      && request.headers[ModificationTime.field] != nil
  }

  /// Runs `ask` unless it has returned true before for the folder of `url`; one at a time for each folder. A failure is
  /// thrown, and the next caller asks again.
  func trust(
    folderOf url: HTTPURL, after ask: () async throws(UploadError) -> Bool
  ) async throws(UploadError) {
    let folder = folder(of: url)
    try await folder.gate.pass { () async throws(UploadError) in
      if folder.isTrusted.load(ordering: .relaxed) { return }
      if try await ask() { folder.isTrusted.store(true, ordering: .relaxed) }
    }
  }
}

/// What a server shows of a file when it is asked by HEAD or GET.
enum RemoteLength: Equatable {
  /// So many bytes are there; nil: the server does not say.
  case found(Int64?)
  /// A GET is answered without content (204): there is an empty file, or something that is no file.
  case noContent
  /// There is nothing.
  case missing
  /// The server does not let us look: it wants other credentials, sends us to another server, or takes no GET there.
  case hidden
}

extension RemoteLength {
  /// nil: there is nothing, or the server does not tell.
  var bytes: Int64? {
    switch self {
    case .found(let length): length
    case .noContent: 0
    case .missing, .hidden: nil
    }
  }
}

extension UploadContext {
  /// Throws where `response`, which is a success, does not mean that `target` is stored: once per folder the server is asked
  /// for the file. A server that does not let anyone look is believed: it tells a PUT from a GET.
  func confirm(
    _ response: HTTPResponse, to request: HTTPRequest, _ body: BlobSlice, _ target: UploadTarget
  ) async throws(UploadError) {
    if putAnswers.isTrusted(after: request, response) { return }
    try await putAnswers.trust(folderOf: request.url) { () async throws(UploadError) in
      let url = place(madeBy: response, to: request)
      // Of a pipe the end was found while it was sent.
      let wanted = target.length ?? body.source.lengthRead(from: body.start)
      let found = try await remoteLength(of: url, expecting: wanted)
      let what: String
      switch found {
      case .hidden, .found(nil): return true
      case .found(let length?):
        // An empty page looks like an empty file, so that one proves nothing for the next.
        guard let wanted, length != wanted else { return length > 0 }
        what = "has \(length) bytes there, and was sent \(wanted)"
      case .noContent:
        // This proves nothing for the next file either.
        guard let wanted, wanted > 0 else { return false }
        what = "has 0 bytes there, and was sent \(wanted)"
      case .missing: what = "has nothing there"
      }
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): answered \(response.status), but the server \(what): it seems to answer "
          + "\(response.status) to everything, and does not store what it is sent there. Is the path right?",
        status: response.status)
    }
  }

  /// Where the file is that a successful request has stored: 201 names what was made, where that has another URL than the
  /// request. RFC 9110 §15.3.2.
  func place(madeBy response: HTTPResponse, to request: HTTPRequest) -> HTTPURL {
    let made = response.status == 201 ? response.headers["Location"].flatMap { request.url.resolve($0) } : nil
    return made.flatMap { $0.isAtServer(of: server.endpoint) ? $0 : nil } ?? request.url
  }

  /// Asks by HEAD; where that does not tell the wanted length, by a GET for the first byte: some servers take no HEAD, or
  /// tell a length of 0.
  func remoteLength(of url: HTTPURL, expecting length: Int64?) async throws(UploadError) -> RemoteLength {
    let head = HTTPRequest("HEAD", url)
    guard let response = try await look(head) else { return .hidden }
    if response.status == 200, let told = response.headers.bytes("Content-Length"), told == length ?? told {
      return .found(told)
    }
    if [401, 403, 407].contains(response.status) { return .hidden }
    guard response.isSuccess || [404, 405, 410, 501].contains(response.status) else {
      throw UploadError(head, response)
    }
    let found = try await lengthByGet(of: url, expecting: length)
    return found == .hidden && [404, 410].contains(response.status) ? .missing : found
  }

  private static let mostCounted: Int64 = 1 << 20

  /// The length that a GET for the first byte tells; where the server sends all there is, it is counted up to 1 MiB.
  func lengthByGet(of url: HTTPURL, expecting length: Int64?) async throws(UploadError) -> RemoteLength {
    let get = HTTPRequest("GET", url, ["Range": "bytes=0-0"])
    let content = CountedContent(atMost: min(length ?? 0, Self.mostCounted))
    let response: HTTPResponse?
    do {
      let on = Exchange(
        received: { bytes throws(BlobError) in try content.take(bytes) },
        began: { head throws(BlobError) in content.begin(head) })
      response = try await look(get, on)
    } catch {
      if !content.isFull { throw error }
      if let told = content.told { return .found(told) }
      // More has come than was wanted. Of a large file it is enough that there is much.
      return .found(length ?? .max <= Self.mostCounted ? content.count : nil)
    }
    guard let response else { return .hidden }
    switch response.status {
    case 206: return .found(response.headers["Content-Range"]?.split(separator: "/").last.flatMap { Int64($0) })
    // An empty file has no first byte.
    case 416: return .found(0)
    case 200: return .found(content.told ?? content.count)
    case 204: return .noContent
    // Another success to a GET is said by a server that says it to everything.
    case 201..<300, 404, 410: return .missing
    default:
      let error = UploadError(get, response)
      if case .retry = error.recovery { throw error }
      return .hidden
    }
  }

  /// nil: the server sends us elsewhere.
  private func look(_ request: HTTPRequest, _ on: Exchange? = nil) async throws(UploadError) -> HTTPResponse? {
    var request = request
    do {
      return try await send(following: &request, on)
    } catch {
      if let status = error.status, 300..<400 ~= status { return nil }
      throw error
    }
  }
}

/// Counts what a server sends and ends it once there is enough. One thread at a time calls `take`.
private final class CountedContent: Sendable {
  private let most: Int64
  private let bytes = Atomic<Int64>(0)
  private let length = Mutex<Int64?>(nil)

  init(atMost most: Int64) { self.most = most }

  var count: Int64 { bytes.load(ordering: .relaxed) }
  var isFull: Bool { count > most }

  /// What the head of a complete answer says of its length.
  var told: Int64? { length.withLock { $0 } }

  func begin(_ head: HTTPHead) {
    if head.status == 200 { length.withLock { $0 = head.headers.bytes("Content-Length") } }
  }

  func take(_ content: UnsafeRawBufferPointer) throws(BlobError) {
    bytes.add(Int64(content.count), ordering: .relaxed)
    if isFull { throw BlobError(.io, "as much as was wanted has come") }
  }
}
