import BlobTesting
import BlobCrypto
import BlobHTTP
import BlobUpload
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An in-memory Google Cloud Storage server for checks, with the bucket `media`. It refuses requests that deviate from
/// the documentation. Like the real service, it stores a multiple of 256 KiB of an interrupted request.
public final class CloudPeer: ProtocolPeer {
  private let desk: CloudPeerStore
  private let peer: HTTPPeer

  /// - `token`: the bearer token that requests must have; nil requires none.
  /// - `refuse`: returns a response to use instead of the server's own.
  public init(token: String? = nil, refuse: @escaping @Sendable (HTTPPeer.Request) -> HTTPPeer.Reply? = { _ in nil }) {
    let desk = CloudPeerStore(token)
    self.desk = desk
    peer = HTTPPeer(beginning: { desk.takeBeginning(of: $0) }) { refuse($0) ?? desk.answer($0) }
  }

  public var endpoint: HTTPURL { HTTPURL("http://127.0.0.1:\(peer.port)/media/")! }
  public func contents(of name: BytePath) -> [UInt8]? { desk.state.update(waking: .none) { $0.objects[name]?.bytes } }
  public func names() -> [BytePath] { desk.state.update(waking: .none) { Array($0.objects.keys) } }
  public func unfinished() -> Int64 {
    desk.state.update(waking: .none) { $0.uploads.values.reduce(0) { $0 + Int64($1.bytes.count) } }
  }
  /// The response to a request that another server was sent.
  public func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply { desk.answer(request) }
  public func restart() { peer.cutAll() }
  /// Discards all unfinished uploads.
  public func forgetUploads() { desk.state.update { $0.uploads = [:] } }
  public func stop() { peer.stop() }

  /// The modification time that the client set on an object.
  public func modificationTime(of name: BytePath) -> String? {
    desk.state.update(waking: .none) { $0.objects[name]?.resource.modificationTime }
  }

  /// Method and path of each request, such as `PUT /upload/storage/v1/b/media/o`, in the order of arrival.
  public var requests: [String] { peer.requests }
}

/// The objects and unfinished uploads of a `CloudPeer`, and its request handlers.
final class CloudPeerStore: Sendable {
  struct Object {
    var bytes: [UInt8]
    var resource: CloudPeerResource
    var generation: Int
  }
  struct Upload {
    var name: BytePath
    var resource: CloudPeerResource
    var length: Int?
    var mustBeNew: Bool
    var bytes: [UInt8] = []
  }
  struct State {
    var objects: [BytePath: Object] = [:]
    var uploads: [String: Upload] = [:]
    /// Object names of finished uploads, by upload ID.
    var finished: [String: BytePath] = [:]
    var made = 0
  }
  let state = Monitor(State())
  private let token: String?

  private static let (objects, uploads) = ("/storage/v1/b/media/o", "/upload/storage/v1/b/media/o")
  private static let unit = 256 << 10

  init(_ token: String?) { self.token = token }

  func answer(_ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    if let token, request.headers["Authorization"] != "Bearer \(token)" { return .init(401) }
    // Chunked bodies are refused, because their length is not declared.
    if request.method != "GET", request.method != "DELETE", request.headers["Content-Length"] == nil {
      return .init(411)
    }
    return state.update { state in
      switch (request.method, request.path) {
      case ("GET", Self.objects): .init(200, [:], Array(#"{"kind": "storage#objects"}"#.utf8))
      case ("POST", Self.uploads): create(request, &state)
      case ("PUT", Self.uploads): append(request, &state)
      case ("DELETE", Self.uploads):
        state.uploads.removeValue(forKey: request.value("upload_id") ?? "") == nil ? .init(404) : .init(499)
      case (_, let path) where path.hasPrefix(Self.objects + "/"):
        object(request, BytePath(percentDecoded(path.utf8.dropFirst(Self.objects.utf8.count + 1))), &state)
      default: .init(404)
      }
    }
  }

  private func object(_ request: HTTPPeer.Request, _ name: BytePath, _ state: inout State) -> HTTPPeer.Reply {
    guard let object = state.objects[name] else { return .init(404) }
    switch request.method {
    case "GET": return request.value("alt") == "media" ? .init(200, [:], object.bytes) : told(name, object)
    case "DELETE":
      if let generation = request.value("generation"), generation != String(object.generation) { return .init(404) }
      state.objects[name] = nil
      return .init(204)
    default: return .init(405)
    }
  }

  private func told(_ name: BytePath, _ object: Object) -> HTTPPeer.Reply {
    let crc32c = Data(Digest.value(of: object.bytes, .crc32c)).base64EncodedString()
    let json = #"{"size": "\#(object.bytes.count)", "crc32c": "\#(crc32c)", "generation": "\#(object.generation)"}"#
    return .init(200, ["Content-Type": "application/json"], Array(json.utf8))
  }

  private func create(_ request: HTTPPeer.Request, _ state: inout State) -> HTTPPeer.Reply {
    guard let text = request.value("name"), !text.isEmpty else { return .init(400) }
    let name = BytePath(percentDecoded(text.utf8))
    let condition = request.value("ifGenerationMatch")
    guard condition == nil || condition == "0" else { return .init(400) }
    if condition == "0", state.objects[name] != nil { return .init(412) }
    switch request.value("uploadType") {
    case "multipart":
      guard let (resource, bytes) = parts(of: request), let resource = CloudPeerResource(resource, name) else {
        return .init(400)
      }
      return publish(bytes, as: name, resource, &state)
    case "resumable":
      guard let resource = CloudPeerResource(request.body, name) else { return .init(400) }
      var upload = Upload(name: name, resource: resource, mustBeNew: condition == "0")
      if let length = request.headers["X-Upload-Content-Length"] {
        guard let length = Int(length), length >= 0 else { return .init(400) }
        upload.length = length
      }
      state.made += 1
      let id = "upload\(state.made)"
      state.uploads[id] = upload
      return .init(200, ["Location": "\(Self.uploads)?uploadType=resumable&upload_id=\(id)"])
    default: return .init(400)
    }
  }

  /// The two parts of a `multipart/related` body.
  private func parts(of request: HTTPPeer.Request) -> ([UInt8], [UInt8])? {
    let type = request.headers["Content-Type"] ?? ""
    let start = "multipart/related; boundary="
    guard type.hasPrefix(start) else { return nil }
    let boundary = Array("--\(type.dropFirst(start.count))".utf8)
    let end = Array("\r\n".utf8) + boundary + Array("--\r\n".utf8)
    guard request.body.starts(with: boundary), request.body.reversed().starts(with: end.reversed()) else { return nil }
    let inside = request.body.dropFirst(boundary.count).dropLast(end.count)
    let between = Array("\r\n".utf8) + boundary
    guard let middle = inside.firstRange(of: between) else { return nil }
    func content(_ part: ArraySlice<UInt8>) -> [UInt8]? {
      part.firstRange(of: Array("\r\n\r\n".utf8)).map { Array(part[$0.upperBound...]) }
    }
    guard let resource = content(inside[..<middle.lowerBound]), let bytes = content(inside[middle.upperBound...]) else {
      return nil
    }
    return (resource, bytes)
  }

  private func publish(
    _ bytes: [UInt8], as name: BytePath, _ resource: CloudPeerResource, _ state: inout State
  ) -> HTTPPeer.Reply {
    state.made += 1
    let object = Object(bytes: bytes, resource: resource, generation: state.made)
    state.objects[name] = object
    return told(name, object)
  }

  private func append(_ request: HTTPPeer.Request, _ state: inout State) -> HTTPPeer.Reply {
    guard let id = request.value("upload_id"), let range = CloudRange(request.headers["Content-Range"]) else {
      return .init(400)
    }
    if let name = state.finished[id] { return state.objects[name].map { told(name, $0) } ?? .init(404) }
    guard var upload = state.uploads[id] else { return .init(404) }
    if let total = range.total {
      guard upload.length == nil || upload.length == total else { return .init(400) }
      upload.length = total
    }
    if let place = range.place {
      guard place.count == request.body.count else { return .init(400) }
      if place.lowerBound > upload.bytes.count { return .init(416) }
      if range.total != place.upperBound, request.body.count % Self.unit != 0 { return .init(400) }
      // The client may send bytes again that are already stored; they are skipped.
      upload.bytes += request.body.dropFirst(upload.bytes.count - place.lowerBound)
    } else if !request.body.isEmpty {
      return .init(400)
    }
    if range.total == upload.bytes.count {
      state.uploads[id] = nil
      if upload.mustBeNew, state.objects[upload.name] != nil { return .init(412) }
      state.finished[id] = upload.name
      return publish(upload.bytes, as: upload.name, upload.resource, &state)
    }
    state.uploads[id] = upload
    return .init(308, upload.bytes.isEmpty ? [:] : ["Range": "bytes=0-\(upload.bytes.count - 1)"])
  }

  /// Stores whole units of a body as they arrive, whether or not the request completes.
  func takeBeginning(of request: HTTPPeer.Request) {
    guard request.method == "PUT", let id = request.value("upload_id"),
      let place = CloudRange(request.headers["Content-Range"])?.place
    else { return }
    state.update { state in
      guard let held = state.uploads[id]?.bytes.count, place.lowerBound <= held else { return }
      let end = (place.lowerBound + request.body.count) / Self.unit * Self.unit
      if end > held {
        state.uploads[id]!.bytes += request.body[(held - place.lowerBound)..<(end - place.lowerBound)]
      }
    }
  }
}

/// The JSON resource with which an upload begins.
struct CloudPeerResource {
  var modificationTime: String?

  /// nil if the JSON is not for `name`.
  init?(_ json: [UInt8], _ name: BytePath) {
    func value(_ path: String) -> String? { JSONPath(path)?.value(in: json) }
    guard value("name") == name.description, value("contentType") != nil else { return nil }
    modificationTime = value("metadata.goog-reserved-file-mtime")
  }
}

/// A `Content-Range` value: `bytes 0-9/20`, `bytes 0-9/*`, `bytes */20` or `bytes */*`.
private struct CloudRange {
  var place: Range<Int>?
  var total: Int?

  init?(_ field: String?) {
    guard let field, field.hasPrefix("bytes ") else { return nil }
    let words = field.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    guard words.count == 2 else { return nil }
    if words[1] != "*" {
      guard let total = Int(words[1]), total >= 0 else { return nil }
      self.total = total
    }
    if words[0] == "*" { return }
    let ends = words[0].split(separator: "-").map { Int($0) }
    guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < total ?? .max else {
      return nil
    }
    place = first..<last + 1
  }
}

extension HTTPPeer.Request {
  /// The percent-encoded value of a query parameter; nil if it is missing.
  fileprivate func value(_ name: String) -> String? {
    let item = query?.split(separator: "&").first { $0.hasPrefix("\(name)=") }
    return item.map { String($0.dropFirst(name.count + 1)) }
  }
}
