import BlobApple
import BlobHTTP
import BlobURLSession
import BlobUpload
import Blobs
import Foundation
import Photos

/// Uploads the photo library. What was uploaded is in one journal, so nothing is sent twice, in whichever way it goes.
final class Backup: Sendable {
  static let server = "https://photos.example/inbox/"
  /// The user wants the whole library to be uploaded in the background, and not all of it is in the journal.
  static var isAdding: Bool { UserDefaults.standard.bool(forKey: "isAdding") }
  let background: BackgroundUploader
  private let front: Uploader
  @MainActor private static var opening: Task<Backup, any Error>?

  /// Made once in a launch. If that fails, for example while the device is locked, the next call tries again.
  @MainActor static func shared() async throws -> Backup {
    let task = opening ?? Task { try await Backup() }
    opening = task
    if case .failure = await task.result, opening == task { opening = nil }
    return try await task.value
  }

  private init() async throws {
    let folder = NSHomeDirectory() + "/Library/Application Support/Backup"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true, attributes: nil)
    let journal = try await Journal(at: BytePath(folder + "/uploads.sqlite"))
    // A server is not asked for its protocols here, since there may be no network at a launch in the background.
    let destination = UploadDestination(
      endpoint: HTTPURL(Self.server)!, uploadProtocol: Tus(), limits: PartLimits(firstPart: 4 << 20))
    front = Uploader(destination, transport: URLSessionTransport(), journal: journal)
    // A photo that an earlier launch has begun is found in the library again.
    background = try BackgroundUploader(
      identifier: "example.GalleryBackup", to: destination, journal: journal, spool: BytePath(folder + "/spool"),
      overwrite: true, reopening: { PhotoAssetSource(identity: $0) })
  }

  /// Uploads these photos now, while the app is in front. Cancelling the task ends it; the next call goes on.
  func uploadInFront(
    _ photos: some AsyncSequence<PhotoGallery.Item, BlobError>, _ show: @MainActor (String) async -> Void
  ) async throws -> String {
    try await forEach(photos, "uploaded") { item in
      let upload = front.start(item, overwrite: true)  // An edited photo replaces its earlier version.
      for await step in upload.progress {
        await show("\(item.name): \(step.sent) of \(item.expectedLength ?? step.sent) bytes")
      }
      if Task.isCancelled { upload.cancel() }
      _ = try await upload.result
    }
  }

  /// Adds everything. The system uploads what was added, also while the app is suspended and after it was terminated. The
  /// loop ends with the app, so the next launch goes through the library again: what was added is not added twice.
  func uploadInBackground() async throws -> String {
    UserDefaults.standard.set(true, forKey: "isAdding")
    let result = try await forEach(PhotoGallery.items(), "added") { try await background.add($0) }
    UserDefaults.standard.set(Task.isCancelled, forKey: "isAdding")
    return "\(result)\n\(background.uploads.count) files are still to be uploaded"
  }

  /// Returns what to show, with a reason if single photos have failed. Throws if the user has not allowed access.
  private func forEach(
    _ photos: some AsyncSequence<PhotoGallery.Item, BlobError>, _ done: String,
    _ upload: (PhotoGallery.Item) async throws -> Void
  ) async throws -> String {
    _ = await PHPhotoLibrary.requestAuthorization(for: .readWrite)
    var (count, failures): (Int, [String]) = (0, [])
    for try await item in photos {
      do {
        try await upload(item)
        count += 1
      } catch let error as UploadError where error.side == .source || error.side == .file {
        failures.append(error.message)  // The next call tries this one again.
      }
    }
    return "\(count) files \(done)" + (failures.first.map { ", \(failures.count) failed: \($0)" } ?? "")
  }
}
