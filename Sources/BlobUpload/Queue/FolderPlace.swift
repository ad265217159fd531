import BlobHTTP
import Synchronization

/// Whether a file is in the place of the destination's folder, which the server is asked once. The user then pushes a folder
/// to the URL of a file, and the server refuses each name below that.
final class FolderPlace: Sendable {
  private let gate = Gate(1)
  private let answer = Mutex<Bool?>(nil)

  /// The error for all items if `error` is a refusal of `item` and the server, which has stored nothing yet, has a file in
  /// the place of the destination's folder; otherwise `error`.
  func explained(_ error: UploadError, of item: UploadItem, _ engine: UploadEngine) async -> UploadError {
    guard error.status == 409 || error.cause is MissingFolder, error.side == .file,
      !engine.uploader.destination.acquaintance.contact.hasStored,
      let place = placeOfFolder(of: item, engine.uploader.destination), await isKnownFile(place, engine)
    else { return error }
    return UploadError(
      .giveUp, .destination,
      "\(place) is a file, so nothing can be sent below it: give the URL of a folder, or delete or rename that file there"
    )
  }

  private func isKnownFile(_ place: HTTPURL, _ engine: UploadEngine) async -> Bool {
    await gate.pass {
      if let known = answer.withLock({ $0 }) { return known }
      let isFile = await isFile(place, engine)
      answer.withLock { $0 = isFile }
      return isFile
    }
  }

  /// The URL of the destination without a slash at its end, if `item` is to be stored below it.
  private func placeOfFolder(of item: UploadItem, _ destination: UploadDestination) -> HTTPURL? {
    // The receiver of a form decides where the file arrives.
    if destination.traits.recipient != nil { return nil }
    let endpoint = destination.endpoint
    let path = endpoint.path.utf8.last == UInt8(ascii: "/") ? String(endpoint.path.dropLast()) : endpoint.path
    guard item.target.url.path.hasPrefix(path + "/") else { return nil }
    return path.isEmpty ? nil : endpoint.resolve(path)
  }

  /// A server has a file under its name only. It has a folder under a name with a slash at the end too, to which it may
  /// redirect.
  private func isFile(_ place: HTTPURL, _ engine: UploadEngine) async -> Bool {
    guard await status(of: place, engine) == 200 else { return false }
    return [404, 410].contains(await status(of: place.appending(pathBytes: []), engine))
  }

  /// The status of the response to HEAD; nil: there is none, or it is that of another URL.
  private func status(of url: HTTPURL, _ engine: UploadEngine) async -> Int? {
    var request = HTTPRequest("HEAD", url)
    // Without a response, the refusal is reported as it is.
    guard let response = try? await engine.context().send(following: &request), request.url == url else { return nil }
    return response.status
  }
}

/// The cause of an error: no file has the name that the server has refused, so its folder may be missing.
struct MissingFolder: Error {}
