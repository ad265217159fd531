// The code of docs/apple.md, sections "Uploading photos" and "Uploading in the background".
import BlobApple
import BlobHTTP
import BlobMedia
import BlobStreams
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

@Sendable nonisolated func newToken() -> String? { nil }

/// A row of the table that shows the photos.
@MainActor
final class Row {
  private var fraction = 0.0
  func show(_ fraction: Double) { self.fraction = fraction }

  func add(_ item: PhotoGallery.Item, to uploader: BackgroundUploader) async throws -> String? {
    do {
      try await uploader.add(item.reportingDownload { fraction in Task { @MainActor in self.show(fraction) } })
    } catch {
      guard [.source, .file].contains(error.side) else { throw error }
      return error.message
    }
    return nil
  }
}

/// A loop goes on with the next file after an error that is about one of them.
@MainActor
func add(_ films: [BytePath], to uploader: BackgroundUploader) async throws -> [String] {
  var problems: [String] = []
  for film in films {
    do {
      try await uploader.add(FileSource(film), as: film.name, contentType: "video/quicktime")
    } catch {
      guard [.source, .file].contains(error.side) else { throw error }
      problems.append(error.message)
    }
  }
  return problems
}

/// What has finished since the app was last in front.
@MainActor
func showFinished(_ uploader: BackgroundUploader) async throws {
  func show(_ name: BytePath, _ identity: BytePath) { print(name, identity) }
  let (now, seen) = (Date().timeIntervalSince1970, UserDefaults.standard.double(forKey: "seen"))
  for upload in try await uploader.finished(since: Int64(min(seen, now))) { show(upload.name, upload.identity) }
  UserDefaults.standard.set(now, forKey: "seen")
}

func request(_ source: any BlobSource, _ url: URL, length: Int64?) throws -> URLRequest {
  var request = URLRequest(url: url)
  request.httpMethod = "PUT"
  try request.setBody(.forURLLoading(source), length: length)
  return request
}

/// The uploaders of this launch, one for each account.
@MainActor
final class Uploaders {
  private let journal: Journal
  private var made: [String: BackgroundUploader] = [:]

  init(_ journal: Journal) { self.journal = journal }

  func uploader(of account: String) throws -> BackgroundUploader {
    if let made = made[account] { return made }
    let folder = NSHomeDirectory() + "/Library/Application Support"
    let new = try BackgroundUploader(
      identifier: "com.example.uploads.\(account)", to: destination(for: account), journal: journal,
      spool: BytePath("\(folder)/spool-\(account)"), configure: { $0.allowsCellularAccess = false })
    made[account] = new
    return new
  }

  func handleEvents(identifier: String, completionHandler: @escaping () -> Void) {
    let prefix = "com.example.uploads."
    guard identifier.hasPrefix(prefix),
      let uploader = try? uploader(of: String(identifier.dropFirst(prefix.count))),
      uploader.handleEvents(identifier: identifier, completionHandler: completionHandler)
    else { return completionHandler() }
  }

  private func destination(for account: String) -> UploadDestination {
    UploadDestination(
      endpoint: HTTPURL("https://photos.example/inbox/")!, uploadProtocol: Tus(), limits: PartLimits(),
      headers: token(of: account).map { ["Authorization": "Bearer \($0)"] } ?? [:], account: account,
      rereading: { token(of: account).map { ["Authorization": "Bearer \($0)"] } })
  }
}

/// From the keychain. nil: this user is not signed in.
@Sendable nonisolated func token(of account: String) -> String? { nil }

/// Uploads that have failed in this launch and in earlier ones.
func failures(_ journal: Journal) async throws -> [String] {
  try await journal.entries(.failed, limit: -1).map { "\($0.intent.path): \($0.error ?? "")" }
}

/// Sends only what is on the phone, and not over the mobile network.
@MainActor
func uploadWithoutMobileData(_ destination: UploadDestination, _ journal: Journal) async throws {
  let transport = URLSessionTransport {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.allowsCellularAccess = false
    return configuration
  }
  let uploader = Uploader(destination, transport: transport, journal: journal)
  for try await item in PhotoGallery.items(allowsNetwork: false) { try await uploader.upload(item) }
}

@MainActor
final class Delegate: NSObject {
  let uploader: BackgroundUploader

  init(_ token: String) async throws {
    let destination = UploadDestination(
      endpoint: HTTPURL("https://photos.example/inbox/")!, uploadProtocol: Tus(), limits: PartLimits(),
      headers: ["Authorization": "Bearer \(token)"], account: "4711",
      rereading: { newToken().map { ["Authorization": "Bearer \($0)"] } })
    let folder = NSHomeDirectory() + "/Library/Application Support"
    let uploader = try BackgroundUploader(
      identifier: "com.example.uploads", to: destination,
      journal: try await Journal(at: BytePath(folder + "/uploads.sqlite")), spool: BytePath(folder + "/spool"),
      reopening: { PhotoAssetSource(identity: $0) ?? ($0.isAbsolute ? FileSource($0) : nil) })
    self.uploader = uploader
  }

  func begin(_ path: String) async throws {
    func show(_ name: BytePath, _ sent: Int64, _ length: Int64?, _ state: BackgroundUpload.State) {}
    Task { for await upload in uploader.events() { show(upload.name, upload.sent, upload.length, upload.state) } }
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
