import BlobHTTP
import Blobs
import Synchronization

/// Whether a success to a PUT means that the body was stored. Some servers respond to every request with a page, or
/// with an empty success. A host may have such a server for one path and a correct one for another, so each folder with
/// uploads is checked separately. A hotspot or a proxy may also begin to respond in place of the server, so successes
/// that do not look like one that was found to be true are checked as well.
final class PutAnswers: Sendable {
  /// State of one folder that receives PUTs.
  private final class Folder: Sendable {
    let isTrusted = Atomic(false)
    /// The `look` of a response that was true; 0: there is none yet.
    let look = Atomic(0)
    /// All of them. A server has few.
    let looks = Mutex<Set<Int>>([])
    /// The server has said of a name that there is nothing.
    let tellsMissing = Atomic(false)
    /// Only one file of the folder is queried at a time.
    let gate = Gate(1)
  }
  let redirects = RedirectedPuts()
  /// Hashes of the values of `Server` in successes that were true, of all folders.
  private let servers = Mutex<Set<Int>>([])
  /// So many values were true that each node of a network seems to have its own.
  private let ignoresServers = Atomic(false)
  private let folders = Mutex<[Substring: Folder]>([:])
  /// Maximum number of folders. Beyond it all are forgotten, and one file of each is queried again.
  private static let mostFolders = 1000

  private func folder(of url: HTTPURL) -> Folder {
    // Called for every small file, so it allocates nothing for a known folder.
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

  /// All successes to PUTs into the folder of `url` are true from now on, whatever they look like.
  func trust(folderOf url: HTTPURL) { folder(of: url).isTrusted.store(true, ordering: .relaxed) }

  /// Called when the server has said that a name in the folder of `url` has no file.
  func noteMissing(inFolderOf url: HTTPURL) { folder(of: url).tellsMissing.store(true, ordering: .relaxed) }

  /// Whether the server says of some name in the folder of `url` that it has no file. Runs `ask` unless that is known;
  /// one call at a time per folder.
  func tellsMissing(
    inFolderOf url: HTTPURL, _ ask: () async throws(UploadError) -> Bool
  ) async throws(UploadError) -> Bool {
    let folder = folder(of: url)
    return try await folder.gate.pass { () async throws(UploadError) in
      if folder.tellsMissing.load(ordering: .relaxed) { return true }
      let tells = try await ask()
      folder.tellsMissing.store(tells, ordering: .relaxed)
      return tells
    }
  }

  /// Whether `response`, a success, is known to be true, because it shows this itself, or an earlier file in the folder
  /// did.
  func isTrusted(after request: HTTPRequest, _ response: HTTPResponse) -> Bool {
    knows(response, in: folder(of: request.url)) || Self.provesStorage(request, response)
  }

  private func knows(_ response: HTTPResponse, in folder: Folder) -> Bool {
    if folder.isTrusted.load(ordering: .relaxed) { return true }
    let look = look(response)
    if folder.look.load(ordering: .relaxed) == look { return true }
    return folder.looks.withLock { $0.contains(look) }
  }

  /// A hash of the fields in which the responses of the server differ from those of another program, such as a hotspot, that
  /// responds in its place; never 0.
  private func look(_ response: HTTPResponse) -> Int {
    var hasher = Hasher()
    hasher.combine(response.status)
    if !ignoresServers.load(ordering: .relaxed) { hasher.combine(response.headers["Server"]) }
    hasher.combine(response.headers["Content-Type"])
    return hasher.finalize() | 1
  }

  /// Whether the response itself shows that the server has stored the file. A server sends `X-OC-MTime: accepted` once
  /// it has set the modification time of the stored file, and no other software knows that field.
  private static func provesStorage(_ request: HTTPRequest, _ response: HTTPResponse) -> Bool {
    response.headers[ModificationTime.field]?.isSameField("accepted") == true
      && request.headers[ModificationTime.field] != nil
  }

  /// Runs `ask` unless it has returned true before for a response like this one in the folder of `url`; one call at a
  /// time per folder. If `ask` throws, the error is passed on, and the next caller runs `ask` again.
  func trust(
    _ response: HTTPResponse, inFolderOf url: HTTPURL, after ask: () async throws(UploadError) -> Bool
  ) async throws(UploadError) {
    let folder = folder(of: url)
    try await folder.gate.pass { () async throws(UploadError) in
      if knows(response, in: folder) { return }
      guard try await ask() else { return }
      noteServer(of: response)
      let look = look(response)
      folder.look.store(look, ordering: .relaxed)
      folder.looks.withLock { looks in
        // A server whose responses all differ is asked about each of its files.
        if looks.count < Self.mostLooks { looks.insert(look) }
      }
    }
  }

  private static let mostLooks = 16

  private func noteServer(of response: HTTPResponse) {
    servers.withLock { servers in
      servers.insert(response.headers["Server"].hashValue)
      if servers.count >= Self.mostLooks { ignoresServers.store(true, ordering: .relaxed) }
    }
  }
}

/// What the responses to HEAD or GET show about a file.
enum RemoteLength: Equatable {
  /// A file of this length; nil: the server does not report the length.
  case found(Int64?)
  /// GET has the response 204: the file is empty, or the resource is not a file.
  case noContent
  /// There is no file.
  case missing
  /// The server does not let us read: it requires other credentials, redirects to another server, or does not support
  /// GET.
  case hidden
}

extension RemoteLength {
  /// nil: there is no file, or the server does not report the length.
  var bytes: Int64? {
    switch self {
    case .found(let length): length
    case .noContent: 0
    case .missing, .hidden: nil
    }
  }
}

extension UploadContext {
  /// Throws if `response`, a success, does not mean that `target` is stored: once per folder and look of the response,
  /// the server is queried for the file. A server that lets nobody read the file is believed, because it distinguishes PUT from GET.
  func confirm(
    _ response: HTTPResponse, to request: HTTPRequest, _ body: BlobSlice, _ target: UploadTarget
  ) async throws(UploadError) {
    if putAnswers.isTrusted(after: request, response) { return }
    try await putAnswers.trust(response, inFolderOf: request.url) { () async throws(UploadError) in
      let url = place(madeBy: response, to: request)
      // The length of a pipe is known only after it was sent.
      let wanted = target.length ?? body.source.lengthRead(from: body.start)
      let found = try await remoteLength(of: url, expecting: wanted)
      let what: String
      switch found {
      case .hidden, .found(nil): return true
      case .found(let length?):
        // A file of length 0 cannot be distinguished from an empty page, so it proves nothing for the next file.
        guard let wanted, length != wanted else { return length > 0 }
        what = "has \(length) bytes there, and was sent \(wanted)"
      case .noContent:
        // This response proves nothing for the next file either.
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

  /// The URL of a file that a successful request has stored: `Location` of a 201 response, if it is at the same server;
  /// otherwise the URL of the request. RFC 9110 §15.3.2.
  func place(madeBy response: HTTPResponse, to request: HTTPRequest) -> HTTPURL {
    let made = response.status == 201 ? response.headers["Location"].flatMap { request.url.resolve($0) } : nil
    return made.flatMap { $0.isAtServer(of: server.endpoint) ? $0 : nil } ?? request.url
  }

  /// Queries by HEAD. If that does not show the expected length, sends a GET for the first byte: some servers do not
  /// support HEAD, or report a length of 0.
  func remoteLength(of url: HTTPURL, expecting length: Int64?) async throws(UploadError) -> RemoteLength {
    let head = HTTPRequest("HEAD", url)
    guard let response = try await look(head) else { return .hidden }
    if response.status == 200, let announced = response.headers.bytes("Content-Length"),
      announced == length ?? announced
    {
      return .found(announced)
    }
    if [401, 403, 407].contains(response.status) { return .hidden }
    guard response.isSuccess || [404, 405, 410, 501].contains(response.status) else {
      throw UploadError(head, response)
    }
    let found = try await lengthByGet(of: url, expecting: length)
    return found == .hidden && [404, 410].contains(response.status) ? .missing : found
  }

  private static let mostCounted: Int64 = 1 << 20

  /// The length that the response to a GET for the first byte reports. If the server sends the whole file, the bytes
  /// are counted, up to 1 MiB.
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
      if content.isCoded { return .found(nil) }
      if !content.isFull { throw error }
      if let announced = content.announced { return .found(announced) }
      // More bytes than expected have arrived. For a large file it is enough to know that there are many.
      return .found(length ?? .max <= Self.mostCounted ? content.count : nil)
    }
    guard let response else { return .hidden }
    // The numbers are those of the compressed content.
    if [200, 206].contains(response.status), response.head.contentCoding != nil { return .found(nil) }
    switch response.status {
    case 206: return .found(response.headers["Content-Range"]?.split(separator: "/").last.flatMap { Int64($0) })
    // An empty file has no first byte.
    case 416: return .found(0)
    case 200: return .found(content.announced ?? content.count)
    case 204: return .noContent
    // A server that gives another success to a GET gives it to every request.
    case 201..<300, 404, 410: return .missing
    default:
      let error = UploadError(get, response)
      if case .retry = error.recovery { throw error }
      return .hidden
    }
  }

  /// nil: the server redirects to another server.
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

/// Counts received bytes, and aborts the response once there are enough. One thread at a time calls `take`.
private final class CountedContent: Sendable {
  private let most: Int64
  private let bytes = Atomic<Int64>(0)
  private let length = Mutex<Int64?>(nil)
  private let coded = Atomic(false)

  init(atMost most: Int64) { self.most = most }

  var count: Int64 { bytes.load(ordering: .relaxed) }
  var isFull: Bool { count > most }

  /// The content is compressed, so neither its length nor its bytes are those of the file.
  var isCoded: Bool { coded.load(ordering: .relaxed) }

  /// The length that the header section of a complete response reports.
  var announced: Int64? { length.withLock { $0 } }

  func begin(_ head: HTTPHead) {
    if head.contentCoding != nil { coded.store(true, ordering: .relaxed) }
    if head.status == 200 { length.withLock { $0 = head.headers.bytes("Content-Length") } }
  }

  func take(_ content: UnsafeRawBufferPointer) throws(BlobError) {
    bytes.add(Int64(content.count), ordering: .relaxed)
    if isFull { throw BlobError(.io, "as much as was wanted has come") }
  }
}
