// The code of docs/apple.md, sections "Uploading photos" and "Uploading in the background".
import BlobApple
import BlobHTTP
import BlobMedia
import BlobURLSession
import BlobUpload
import Blobs
import Foundation

#if os(iOS)
  import UIKit
#endif

@MainActor
func uploadInFront(_ identifiers: [String], to destination: UploadDestination, _ journal: Journal) async throws {
  let uploader = Uploader(destination, transport: URLSessionTransport(), journal: journal)
  for try await item in PhotoGallery.items() { try await uploader.upload(item) }
  for try await item in PhotoGallery.items(assets: identifiers, edits: .current) {
    let result = try await uploader.upload(item, overwrite: true) { progress in
      print(progress.acknowledged, progress.sent, item.expectedLength ?? 0)
    }
    print(result?.location ?? "was there")
    let running = uploader.start(
      item.source, as: item.path, identity: item.identity, contentType: item.contentType,
      metadata: item.facts.metadata)
    for await step in running.progress { print(step.sent) }
    try await uploader.upload(item.reportingDownload { print("iCloud", $0) })
  }
}

@Sendable nonisolated func newToken() -> String { "" }

@MainActor
final class Delegate: NSObject {
  let uploader: BackgroundUploader

  init(_ token: String) async throws {
    let destination = UploadDestination(
      endpoint: HTTPURL("https://photos.example/inbox/")!, uploadProtocol: Tus(), limits: PartLimits(),
      headers: ["Authorization": "Bearer \(token)"], account: "4711",
      rereading: { ["Authorization": "Bearer \(newToken())"] })
    let folder = NSHomeDirectory() + "/Library/Application Support"
    uploader = try BackgroundUploader(
      identifier: "com.example.uploads", to: destination,
      journal: try await Journal(at: BytePath(folder + "/uploads.sqlite")), spool: BytePath(folder + "/spool"),
      reopening: { PhotoAssetSource(identity: $0) ?? ($0.isAbsolute ? FileSource($0) : nil) })
  }

  func begin(_ path: String) async throws {
    Task { for await upload in uploader.events() { print(upload.name, upload.acknowledged, upload.state) } }
    try await uploader.add(FileSource(BytePath(path)), as: "2026/holiday.mov", contentType: "video/quicktime")
    for try await item in PhotoGallery.items() { try await uploader.add(item) }
  }

  func signIn() { uploader.tryAgain() }
  func signOut() async throws { try await uploader.cancelAll() }

  #if os(iOS)
    func application(
      _ a: UIApplication, handleEventsForBackgroundURLSession id: String, completionHandler: @escaping () -> Void
    ) {
      if !uploader.handleEvents(identifier: id, completionHandler: completionHandler) { completionHandler() }
    }
  #endif
}
