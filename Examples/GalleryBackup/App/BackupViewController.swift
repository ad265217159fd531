import BlobApple
import Blobs
import PhotosUI
import UIKit

/// Three buttons, and what is being uploaded.
final class BackupViewController: UIViewController, PHPickerViewControllerDelegate {
  private let status = UILabel()
  private var upload: Task<Void, Never>?
  private var events: Task<Void, Never>?

  // The tasks do not keep the controller, so it is released while they run.
  deinit { for task in [upload, events] { task?.cancel() } }

  override func loadView() {
    status.numberOfLines = 0
    let stack = UIStackView(arrangedSubviews: [
      button("Upload some photos") { $0.pick() },
      button("Upload all now") { $0.uploadInFront(PhotoGallery.items()) },
      button("Upload all in the background") { $0.start { try await $0.uploadInBackground() } },
      status,
    ])
    (stack.axis, stack.distribution) = (.vertical, .fillEqually)
    view = stack
  }

  override func viewDidLoad() {
    super.viewDidLoad()
    start { try await Backup.isAdding ? $0.uploadInBackground() : "" }  // Uploads of earlier launches go on.
  }

  private func pick() {
    var configuration = PHPickerConfiguration(photoLibrary: .shared())  // With it, results have identifiers.
    configuration.selectionLimit = 0
    let picker = PHPickerViewController(configuration: configuration)
    picker.delegate = self
    present(picker, animated: true)
  }

  private func uploadInFront(_ photos: some AsyncSequence<PhotoGallery.Item, BlobError> & Sendable) {
    start { [weak self] backup in try await backup.uploadInFront(photos) { self?.status.text = $0 } }
  }

  private func start(_ action: @escaping @MainActor (Backup) async throws -> String) {
    upload?.cancel()
    upload = Task { [weak self] in
      let result: String
      do {
        let backup = try await Backup.shared()
        self?.follow(backup.background)
        result = try await action(backup)
      } catch {
        result = "\(error)"
      }
      if !Task.isCancelled { self?.status.text = result }  // Otherwise another button has the label.
    }
  }

  private func follow(_ background: BackgroundUploader) {
    if events != nil { return }
    events = Task { [weak self] in
      for await upload in background.events() {
        self?.status.text = "\(background.uploads.count) files left\n\(upload.name): \(upload.state)"
      }
    }
  }

  private func button(_ title: String, _ action: @escaping (BackupViewController) -> Void) -> UIButton {
    UIButton(type: .system, primaryAction: UIAction(title: title) { [weak self] _ in self.map(action) })
  }

  func picker(_ picker: PHPickerViewController, didFinishPicking results: [PHPickerResult]) {
    picker.dismiss(animated: true)
    if !results.isEmpty { uploadInFront(PhotoGallery.items(assets: results.compactMap(\.assetIdentifier))) }
  }
}
