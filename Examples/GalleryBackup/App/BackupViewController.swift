import BlobApple
import BlobUpload
import UIKit

/// Two buttons, and what is being uploaded.
final class BackupViewController: UIViewController {
  private let backup: Task<Backup, any Error>
  private let status = UILabel()
  private let bar = UIProgressView()
  private var upload: Task<Void, Never>?

  init(_ backup: Task<Backup, any Error>) {
    self.backup = backup
    super.init(nibName: nil, bundle: nil)
  }

  required init?(coder: NSCoder) { nil }

  override func loadView() {
    status.numberOfLines = 0
    let views = [
      button("Upload now", #selector(uploadInFront)), button("Upload in the background", #selector(uploadInBackground)),
      bar, status,
    ]
    let stack = UIStackView(arrangedSubviews: views)
    stack.axis = .vertical
    stack.distribution = .fillEqually
    view = stack
  }

  override func viewDidLoad() {
    super.viewDidLoad()
    // The uploads that the system has, including those of earlier launches.
    Task {
      do {
        for await upload in try await backup.value.background.events() { show(upload) }
      } catch {
        status.text = "\(error)"
      }
    }
  }

  @objc private func uploadInFront() {
    start { backup in
      try await backup.uploadInFront { [weak self] name, sent in
        Task { @MainActor [weak self] in self?.status.text = "\(name): \(sent) bytes" }
      }
    }
  }

  @objc private func uploadInBackground() { start { try await $0.uploadInBackground() } }

  private func start(_ action: @escaping @MainActor (Backup) async throws -> [String]) {
    upload?.cancel()
    upload = Task {
      let result: String
      do {
        let failures = try await action(try await backup.value)
        result = failures.first.map { "\(failures.count) photos failed: \($0)" } ?? "Done"
      } catch {
        result = "\(error)"
      }
      // After a tap on another button, that one has the label.
      if !Task.isCancelled { status.text = result }
    }
  }

  private func show(_ upload: BackgroundUpload) {
    if let length = upload.length, length > 0 { bar.progress = Float(upload.acknowledged) / Float(length) }
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
