import BlobApple
import BlobHTTP
import BlobMedia
import BlobURLSession
import BlobUpload
import Blobs
import Foundation
import Photos

/// Uploads the photo library. What was uploaded is in one journal, so nothing is sent twice, in whichever way it goes.
final class Backup: Sendable {
  static let server = "https://photos.example/inbox/"

  let background: BackgroundUploader
  private let front: Uploader

  init() async throws {
    let folder = NSHomeDirectory() + "/Library/Application Support/Backup"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true, attributes: nil)
    let journal = try await Journal(at: BytePath(folder + "/uploads.sqlite"))
    // A server is not asked for its protocols here, since there may be no network at a launch in the background.
    let destination = UploadDestination(
      endpoint: HTTPURL(Self.server)!, dialect: Tus(), limits: PartLimits(firstPart: 4 << 20))
    front = Uploader(destination, transport: URLSessionTransport(), journal: journal)
    background = try BackgroundUploader(
      identifier: "example.GalleryBackup", to: destination, journal: journal, spool: BytePath(folder + "/spool"),
      configure: { $0.allowsCellularAccess = false },
      // A photo that an earlier launch has begun is found in the library again.
      reopening: { identity in PhotoAssetSource(identity: identity) })
  }

  /// Uploads now, while the app is in front. Cancelling the task ends it; the next call goes on at the same byte.
  func uploadInFront(_ progress: @escaping @Sendable (String, Int64) -> Void) async throws {
    for try await item in try await photos() {
      let source = ProgressSource(item.source) { progress(item.name, $0.offset) }
      do throws(UploadError) {
        _ = try await front.upload(source, as: name(of: item), identity: item.identity)
      } catch {
        guard error.side == .source || error.side == .file else { throw error }
        // The other photos can still be uploaded; the next call tries this one again.
        progress(error.message, 0)
      }
    }
  }

  /// Gives everything to the system, which uploads while the app is suspended, and after it was terminated.
  func uploadInBackground() async throws {
    for try await item in try await photos() {
      try await background.add(item.source, as: name(of: item), identity: item.identity)
    }
  }

  /// The files of the library, oldest first.
  private func photos() async throws -> AsyncThrowingStream<PhotoGallery.Item, any Error> {
    _ = await PHPhotoLibrary.requestAuthorization(for: .readWrite)
    return AsyncThrowingStream { items in
      // PhotoKit blocks, so it is asked on a thread that may wait.
      DispatchQueue.global().async {
        do {
          let gallery = try PhotoGallery(edits: .both)
          while case let page = gallery.next(), !page.isEmpty {
            for item in page { items.yield(item) }
          }
          items.finish()
        } catch {
          items.finish(throwing: error)
        }
      }
    }
  }

  /// The names of files are unique within their asset only.
  private func name(of item: PhotoGallery.Item) -> BytePath {
    BytePath("\(item.asset.prefix { $0 != "/" })/\(item.name)")
  }
}
