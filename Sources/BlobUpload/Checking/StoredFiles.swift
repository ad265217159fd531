import BlobHTTP
import Blobs

/// The files at a destination, to be listed and read. Nothing is changed there.
package struct StoredFiles: Sendable {
  private let uploader: Uploader
  /// Reads the files. It is not the transport that asks for lists.
  private let reading: any Transport

  /// `reading`: must have a connection for each file that is read at once.
  package init(_ uploader: Uploader, reading: any Transport) {
    self.uploader = uploader
    self.reading = ReadingTransport(reading, uploader.destination)
  }

  /// Asks what is to be known of the destination as a whole. Throws if it refuses.
  package func begin() async throws(UploadError) { try await uploader.destination.askQuestion() }

  /// Calls `take` with the entries of a folder below the destination, page by page, in order of the server. Throws if the
  /// server does not list it. Entries may come twice, if the server has failed meanwhile.
  package func list(
    _ folder: BytePath, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    if try await lists(folder, take) { return }
    // A folder below may be closed to this account.
    throw UploadError(
      .giveUp, folder.isEmpty ? .destination : .file,
      "\(url(of: folder)): the server does not list this folder (it is no Fullbore server, WebDAV server or S3 bucket, or refuses)",
      cause: UnlistedFolder())
  }

  /// As `list`. Returns false if the server does not list the folder.
  func lists(
    _ folder: BytePath, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool {
    let url = url(of: folder)
    return try await uploader.patiently("\(url)") { () async throws(UploadError) in
      try await uploader.destination.uploadProtocol.listEntries(in: url, uploader.context(), take)
    }
  }

  private func url(of folder: BytePath) -> HTTPURL {
    let place = uploader.destination.endpoint.folder
    return folder.isEmpty ? place : place.appending(pathBytes: folder.bytes + [UInt8(ascii: "/")])
  }

  /// The file at a path below the destination's folder. A reader of it waits for the server as an upload does.
  package func source(_ path: BytePath) async throws(UploadError) -> any BlobSource {
    let destination = uploader.destination
    let url = try await destination.uploadProtocol.place(
      of: destination.target(path, length: nil), location: nil, uploader.context())
    return HTTPRangeSource(timedAt: url, over: reading, headers: destination.credentials.fields) { [uploader] in
      FailedReads(uploader, url)
    }
  }
}

/// The cause of the error for a folder that the server does not list.
package struct UnlistedFolder: Error {}

extension UploadDestination {
  /// Throws if the destination refuses all requests.
  func askQuestion() async throws(UploadError) {
    guard let question else { return }
    let refused = FirstError()
    question.open()
    await question.ask { refused.keep($0) }
    if let error = refused.error { throw error }
  }
}

/// Signs requests to one server before they are sent, and notes its responses.
private struct ReadingTransport: Transport {
  private let transport: any Transport
  private let destination: UploadDestination

  init(_ transport: any Transport, _ destination: UploadDestination) {
    (self.transport, self.destination) = (transport, destination)
  }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if !request.url.isAtServer(of: destination.endpoint) { return try await transport.send(request, body: body, on) }
    var request = request
    destination.traits.sign?(&request)
    let response = try await transport.send(request, body: body, on)
    destination.acquaintance.note(response)
    return response
  }
}
