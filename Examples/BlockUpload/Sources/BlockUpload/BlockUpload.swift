import BlobHTTP
import BlobUpload
import Blobs

/// Uploads to a server that composes a file from blocks, as Azure Blob Storage does. Blocks are sent in any order, the
/// server lists the blocks it has, and a list of block IDs commits them as a file.
///
/// | request | response |
/// |---|---|
/// | `PUT /name`, the whole of a small file | 201 |
/// | `PUT /name?block=ID`, the bytes of a block | 201 |
/// | `GET /name?blocks` | 200, a line for each block: `open` or `committed`, its ID, its size |
/// | `PUT /name?commit`, the IDs in order, one per line | 201; 400 if a block is missing |
/// | `DELETE /name?blocks=PREFIX`, deletes open blocks by the prefix of their IDs | 204 |
///
/// With `If-None-Match: *`, a request that creates a file gives 412 if the name is taken.
public struct BlockUpload: UploadProtocol {
  public let name = "blocks"
  /// Files up to this many bytes are sent in one request.
  public var wholeUpTo: Int64
  /// Bytes of a block if no other size is requested.
  public var blockSize: Int64

  public init(wholeUpTo: Int64 = 4 << 20, blockSize: Int64 = 8 << 20) {
    self.wholeUpTo = wholeUpTo
    self.blockSize = blockSize
  }

  /// The engine plans numbered parts and sends several concurrently. Only `send`, `held` and `complete` know how a part
  /// is represented on the server.
  public var traits: UploadTraits { UploadTraits(numbersParts: true) }

  /// Returns fixed limits without a request, because this protocol has no discovery.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let limits = PartLimits(
      largest: BlockID.largest, usual: blockSize, count: BlockID.most, isParallel: true, needsLength: true,
      firstPart: wholeUpTo)
    return UploadOffer(self, limits)
  }

  /// Sends a small file, or begins a large one. Beginning needs no request, because the upload's ID is part of the
  /// block IDs.
  public func create(
    _ target: UploadTarget, first: FirstPart?, _ with: UploadContext
  ) async throws(UploadError) -> Held {
    if let first { return .finished(try await put(target, first.body, with)) }
    if !target.overwrite {
      let request = HTTPRequest("HEAD", target.url)
      let response = try await with.send(request)
      if response.isSuccess { return .finished(try await claim(target.url, with)) }
      guard response.status == 404 else { throw UploadError(request, response) }
    }
    var state = ["url": target.url.text, "upload": BlockID.newUpload()]
    if target.overwrite { state["overwrite"] = "true" }
    let session = UploadSession(state: state)
    // The journal must contain the session before the first block is sent.
    with.opened(session)
    return .parts([], session)
  }

  private func put(
    _ target: UploadTarget, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    var request = HTTPRequest("PUT", target.url, ["Content-Type": target.contentType])
    if !target.overwrite { request.headers["If-None-Match"] = "*" }
    let response = try await with.send(request, body: body)
    switch response.status {
    case 201: return UploadResult(location: target.url.text)
    case 412: return try await claim(target.url, with)
    default: throw UploadError(request, response)
    }
  }

  /// Handles a name that is taken. This is a success if the file has the same bytes, for example after a lost response.
  private func claim(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    if let whole = with.whole, try await with.hasSameBytes(as: whole, at: url) == true {
      return UploadResult(location: url.text, isCompared: true)
    }
    throw UploadError(.giveUp, .file, "\(url): another file has that name", status: 412)
  }

  /// Sends one block. The engine calls this concurrently for several blocks, and retries failures.
  public func send(
    _ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> Sent {
    guard let length = part.length else { preconditionFailure("a numbered part has a length") }
    let id = BlockID(upload: try session.upload(), number: part.number)
    let request = HTTPRequest("PUT", try session.uploadURL().withQuery("block=\(id.text)"))
    let response = try await with.send(request, body: body)
    guard response.status == 201 else { throw UploadError(request, response) }
    return .receipt(PartReceipt(number: part.number, start: part.start, held: length), session)
  }

  /// Asks the server for its blocks. The engine sends blocks again that are missing or have an unexpected size.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    let upload = try session.upload()
    let request = HTTPRequest("GET", try session.uploadURL().withQuery("blocks"))
    let response = try await with.send(request)
    if response.status == 404 { return .parts([], session) }
    guard response.status == 200 else { throw UploadError(request, response) }
    let blocks = try HeldBlock.list(response, to: request).filter { $0.id.upload == upload }
    // The response to the commit was lost: the file consists of our blocks. If their total length is that in the
    // session, they are all of the committed blocks. A pipe, which cannot be read again, then needs no comparison.
    let committed = blocks.filter(\.isCommitted)
    if !committed.isEmpty {
      let length = committed.reduce(0) { $0 + $1.size }
      let isAll = session.state["length"] == String(length)
      return .finished(UploadResult(location: request.url.description, length: length, isCompared: isAll))
    }
    // A damaged journal may contain any number.
    let partSize = min(session.partSize ?? 0, BlockID.largest)
    let receipts = blocks.map {
      PartReceipt(number: $0.id.number, start: Int64($0.id.number - 1) * partSize, held: $0.size)
    }
    return .parts(receipts, session)
  }

  /// Commits the blocks as a file.
  public func complete(
    _ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let (upload, url) = (try session.upload(), try session.uploadURL())
    let length = parts.reduce(0) { $0 + $1.held }
    var committing = session
    committing.state["length"] = String(length)
    with.opened(committing)
    let ids = parts.map { "\(BlockID(upload: upload, number: $0.number).text)\n" }.joined()
    var request = HTTPRequest("PUT", url.withQuery("commit"), ["Content-Type": "text/plain"])
    if session.state["overwrite"] == nil { request.headers["If-None-Match"] = "*" }
    // The list is not part of the file, so its bytes must not count as progress.
    var uncounted = with
    uncounted.events = NoUploadEvents()
    let response = try await uncounted.send(request, body: BlobSlice(DataSource(Array(ids.utf8))))
    if response.status == 201 { return UploadResult(location: url.text, length: length) }
    guard [400, 412].contains(response.status) else { throw UploadError(request, response) }
    // An earlier commit may have created the file although its response was lost.
    if case .finished(let result) = try await held(by: committing, with) { return result }
    if response.status == 400 {
      // A block is missing on the server, so the engine must list the blocks again.
      var error = UploadError(request, response)
      error.recovery = .resync
      throw error
    }
    // Another client has created the file first, so these blocks are useless.
    try await abort(session, with)
    return try await claim(url, with)
  }

  /// Deletes the blocks of an abandoned upload.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", try session.uploadURL().withQuery("blocks=\(try session.upload())"))
    let response = try await with.send(request)
    guard [204, 404].contains(response.status) else { throw UploadError(request, response) }
  }

  public func isThere(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> Bool {
    try await with.isThere(target)
  }
}

extension UploadSession {
  fileprivate func upload() throws(UploadError) -> String {
    if let upload = state["upload"] { return upload }
    throw UploadError(.restart, .journal, "the upload's id is missing from the journal")
  }
}

/// The ID of a block. All IDs of a file must have the same length, and begin with the upload's ID.
struct BlockID: Hashable {
  /// Maximum number of blocks in a file.
  static let most = 10_000
  /// Maximum size of a block in bytes.
  static let largest: Int64 = 100 << 20

  var upload: String
  /// The block's number, starting at 1.
  var number: Int

  init(upload: String, number: Int) { (self.upload, self.number) = (upload, number) }

  /// nil if `text` is not the ID of a block from this client.
  init?(_ text: Substring) {
    let words = text.split(separator: "-")
    guard words.count == 2, let number = Int(words[1]), 1...Self.most ~= number else { return nil }
    (upload, self.number) = (String(words[0]), number)
  }

  var text: String {
    let digits = String(number)
    return "\(upload)-\(String(repeating: "0", count: 5 - digits.utf8.count))\(digits)"
  }

  static func newUpload() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}

/// A block on the server.
struct HeldBlock {
  var id: BlockID
  var size: Int64
  var isCommitted: Bool

  /// Parses the list of blocks. Blocks of other clients are left out.
  static func list(_ response: HTTPResponse, to request: HTTPRequest) throws(UploadError) -> [HeldBlock] {
    var blocks: [HeldBlock] = []
    for line in String(decoding: response.body, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 3, ["open", "committed"].contains(words[0]), let size = Int64(words[2]),
        0...BlockID.largest ~= size
      else {
        throw UploadError(
          .giveUp, .destination, "\(request.method) \(request.url): answered without a list of blocks",
          status: response.status)
      }
      guard let id = BlockID(words[1]) else { continue }
      blocks.append(HeldBlock(id: id, size: size, isCommitted: words[0] == "committed"))
    }
    return blocks
  }
}
