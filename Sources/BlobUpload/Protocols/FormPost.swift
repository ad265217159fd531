import BlobHTTP
import Blobs

/// One POST of a `multipart/form-data` form that contains the whole file, as from a web page. RFC 7578.
///
/// An upload cannot be resumed: an interrupted form is sent again, and so is one whose response was lost. A receiver
/// that gives each form a new name then has the file twice.
public struct FormPost: UploadProtocol {
  public let name = "form"
  /// Name of the file's field.
  public var field: String
  /// Fields before the file, in this order. In a value, `{name}` stands for the file's name, and `{path}` for its path
  /// below the endpoint.
  public var fields: [FormField]
  /// The status that means success; nil: 200, 201 or 204. If it is a redirect, the redirect is not followed.
  public var expectedStatus: Int?
  /// The position of the file's location in a JSON response; nil: the response contains none.
  public var reply: JSONPath?

  private static let usualField = "file"

  /// Creates the protocol. `expectedStatus` nil: any status from 200 to 299 means success.
  public init(field: String = "file", fields: [FormField] = [], expectedStatus: Int? = nil, reply: JSONPath? = nil) {
    self.field = field
    self.fields = fields
    self.expectedStatus = expectedStatus
    self.reply = reply
  }

  /// The receiver of a form decides what to do with the file, so the file need not be the one of that name in the folder.
  public var traits: UploadTraits {
    var recipient = field == Self.usualField ? [] : ["file \(field)"]
    for field in fields { recipient += ["field \(field.name)", field.value] }
    // A receiver that says where each file is has given each a place of its own.
    let dropsFolders = reply == nil && !fields.contains { $0.value.utf8.firstRange(of: "{path}".utf8) != nil }
    return UploadTraits(postsToEndpoint: true, recipient: recipient, dropsFolders: dropsFolders)
  }

  /// Sends no request: only sending a form can show what the receiver accepts.
  public func discover(_ target: UploadTarget, _ with: UploadContext) -> UploadOffer {
    UploadOffer(self, PartLimits(firstPart: .max))
  }

  /// Sends the whole file to the endpoint. 409 and 412 mean that the name has other bytes.
  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    guard let first, first.part.isLast, first.part.start == 0 else {
      preconditionFailure("a form has the whole file, from the first byte to the last")
    }
    let form = form(for: target, first.body)
    var with = with
    with.secretValues = fields.compactMap(\.secret)
    var request = form.request(to: target.endpoint)
    if target.overwrite { request.headers["If-Match"] = "*" }
    var response = try await send(&request, form, first.part, with)
    // Another client may make or delete the file meanwhile.
    for _ in 0..<HTTPRequest.mostConditions where target.overwrite {
      guard request.changeCondition(after: response) else { break }
      response = try await send(&request, form, first.part, with)
    }
    return .finished(try result(of: request, response, with))
  }

  func form(for target: UploadTarget, _ body: BlobSlice) -> MultipartForm {
    var form = MultipartForm()
    for field in fields { form.append(FormPart(DataSource(field.value(for: target)), name: Array(field.name.utf8))) }
    form.append(
      FormPart(
        SlicedSource(body), name: Array(field.utf8), fileName: target.path.name.bytes,
        headers: ["Content-Type": target.contentType]))
    return form
  }

  /// Files of at least this many bytes get a connection of their own, so that a cut answer is known to be that to the form,
  /// which is then not sent twice. For smaller files, the new connections would cost more time than the bytes.
  private static let newConnectionFrom: Int64 = 1 << 20

  private func send(
    _ request: inout HTTPRequest, _ form: MultipartForm, _ part: Part, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse {
    var exchange = with.reporting(fileBehind: form.lengthBeforeLastPart, length: part.length)
    exchange.needsNewConnection = part.length ?? .max >= Self.newConnectionFrom
    do {
      return try await with.send(
        following: &request, body: BlobSlice(form), exchange, accepting: expectedStatus)
    } catch {
      if let head = (error.cause as? TransportError)?.head { return try answer(head, after: error) }
      throw expectedStatus == nil ? Self.explained(error) : error
    }
  }

  /// The response whose content did not arrive. The form is not sent again, since the receiver may have taken it.
  private func answer(_ head: HTTPHead, after error: UploadError) throws(UploadError) -> HTTPResponse {
    let response = HTTPResponse(head: head)
    guard head.status == expectedStatus || response.saysStored else { throw error }
    if reply == nil { return response }
    var error = error.final
    error.side = .file
    error.message += "; it began with \(head.status), so the file may be there, but nothing is known of \(reply!)"
    throw error
  }

  /// Many receivers of forms answer a form that they took by sending the browser to another page.
  private static func explained(_ error: UploadError) -> UploadError {
    guard let status = error.status, 301...303 ~= status else { return error }
    var error = error
    error.message += ". If the receiver says so that it has the file, expect the status \(status): --expect \(status)"
    return error
  }

  private func result(
    of request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) throws(UploadError) -> UploadResult {
    guard response.status == expectedStatus || response.saysStored else {
      throw UploadError(creating: request, response)
    }
    if let expectedStatus, response.status != expectedStatus {
      throw UploadError(
        .giveUp, .file, "POST \(request.url): answered \(response.status), and \(expectedStatus) was expected",
        status: response.status)
    }
    // A redirect leads to a page, such as the list of all files, and does not give the file's location.
    var location =
      response.isSuccess ? response.headers["Location"].flatMap { request.url.resolve($0)?.text } : nil
    if let reply {
      guard let found = reply.value(in: response.body) else {
        throw UploadError(
          .giveUp, .file,
          "POST \(request.url): answered \(response.status), but its answer has nothing at \(reply): the file may be there",
          status: response.status)
      }
      // The location is stored, but never a secret: if the response repeats one there, the file counts as stored
      // without a location.
      location = with.secrets().isOne(in: found.utf8) ? nil : found
    }
    return UploadResult(location: location, reply: response.body)
  }

  public func held(by session: UploadSession, _ with: UploadContext) throws(UploadError) -> Held {
    throw UploadError(.restart, .destination, "a form cannot be asked how far it got")
  }

  /// Always throws with `.restart`, because a form has no further parts.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    throws(UploadError) -> Sent
  {
    throw UploadError(.restart, .destination, "a form has no further parts")
  }

  public func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext) -> UploadResult {
    UploadResult()
  }

  static let saidNothing =
    "the receiver of forms did not say where the file is; --reply tells where in its answer it says so"

  /// The URL from which a file can be read back: the location that the receiver reported, or the form's file name in
  /// the folder that forms are posted to. A form does not contain the folders of `target.path`.
  public func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) throws(UploadError) -> HTTPURL {
    let endpoint = target.endpoint
    guard let location else {
      if endpoint.path.hasSuffix("/") { return endpoint.folder.appending(pathBytes: target.path.name.bytes) }
      throw UploadError(
        .giveUp, .destination, "\(target.path): cannot be read back: \(Self.saidNothing)")
    }
    guard let url = endpoint.resolve(location), url.origin == endpoint.origin else {
      throw UploadError(
        .giveUp, .destination,
        "\(target.path): cannot be read back: the receiver of forms said that it is at \(location.prefix { $0 != "?" }), "
          + "which is not at \(endpoint.origin)")
    }
    return url
  }

  /// A receiver that reports no location, and does not return the file under its name, does so for every file.
  public func judge(readingBack error: UploadError, location: String?) -> UploadError {
    guard location == nil, let status = error.status, 400..<500 ~= status else { return error }
    var error = error
    error.side = .destination
    error.message += " (\(Self.saidNothing))"
    return error
  }

  /// HEAD for the location that the receiver reported. Throws if it reported none.
  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    guard let location, let url = target.endpoint.resolve(location), url.origin == target.endpoint.origin else {
      throw UploadError(
        .giveUp, .file, "the receiver of forms did not say where it is, so it cannot be asked for it")
    }
    var place = target
    place.url = url
    return try await with.isThere(place)
  }

  /// There is nothing to delete: an interrupted request is not a complete form.
  public func abort(_ session: UploadSession, _ with: UploadContext) {}
}

/// A text field of a form, in addition to the file.
public struct FormField: Sendable, Hashable, Codable {
  /// The name of the field.
  public var name: String
  /// The text of the field.
  public var value: String

  /// Creates a field.
  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }

  /// nil: the value contains the file's name, which is not secret.
  fileprivate var secret: String? {
    value.utf8.firstRange(of: "{name}".utf8) == nil && value.utf8.firstRange(of: "{path}".utf8) == nil ? value : nil
  }

  /// The value as bytes, because file names are bytes.
  fileprivate func value(for target: UploadTarget) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = Array(value.utf8)[...]
    while !rest.isEmpty {
      if rest.starts(with: "{name}".utf8) {
        bytes += target.path.name.bytes
        rest = rest.dropFirst(6)
      } else if rest.starts(with: "{path}".utf8) {
        bytes += target.path.bytes
        rest = rest.dropFirst(6)
      } else {
        bytes.append(rest.removeFirst())
      }
    }
    return bytes
  }
}
