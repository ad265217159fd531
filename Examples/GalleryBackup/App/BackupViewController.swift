import BlobApple
import BlobUpload
import UIKit

/// Two buttons, and what is being uploaded.
final class BackupViewController: UIViewController {
  private let status = UILabel()
  private var upload: Task<Void, Never>?
  private var events: Task<Void, Never>?

  // The tasks do not keep the controller, so it is released while they run.
  deinit {
    upload?.cancel()
    events?.cancel()
  }

  override func loadView() {
    status.numberOfLines = 0
    let now = button("Upload now", #selector(uploadInFront))
    let later = button("Upload in the background", #selector(uploadInBackground))
    let stack = UIStackView(arrangedSubviews: [now, later, status])
    stack.axis = .vertical
    stack.distribution = .fillEqually
    view = stack
  }

  override func viewDidLoad() {
    super.viewDidLoad()
    // The system may have uploads of earlier launches.
    start { _ in "" }
  }

  @objc private func uploadInFront() {
    start { [weak self] backup in
      try await backup.uploadInFront { name, sent in
        Task { @MainActor in self?.status.text = "\(name): \(sent) bytes" }
      }
    }
  }

  @objc private func uploadInBackground() { start { try await $0.uploadInBackground() } }

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
      // After a tap on another button, that one has the label.
      if !Task.isCancelled { self?.status.text = result }
    }
  }

  private func follow(_ background: BackgroundUploader) {
    if events != nil { return }
    events = Task { [weak self] in
      for await upload in background.events() { self?.show(upload) }
    }
  }

  private func show(_ upload: BackgroundUpload) {
    switch upload.state {
    case .uploading: status.text = "\(upload.name): \(upload.acknowledged) bytes"
    case .waiting(let error, let delay): status.text = "\(upload.name): again in \(delay): \(error.message)"
    case .finished: status.text = "\(upload.name) is on the server"
    case .failed(let error): status.text = "\(upload.name): \(error.message)"
    case .cancelled: status.text = "\(upload.name) was cancelled"
    }
  }

  private func button(_ title: String, _ action: Selector) -> UIButton {
    let button = UIButton(type: .system)
    button.setTitle(title, for: .normal)
    button.addTarget(self, action: action, for: .touchUpInside)
    return button
  }
}
