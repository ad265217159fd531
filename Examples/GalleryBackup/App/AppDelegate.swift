import BlobApple
import UIKit

/// An app that uploads the photo library to `Backup.server`, in front and in the background.
@main
final class AppDelegate: UIResponder, UIApplicationDelegate {
  /// The system has uploaded something while the app was suspended or terminated.
  func application(
    _ app: UIApplication, handleEventsForBackgroundURLSession id: String, completionHandler: @escaping () -> Void
  ) {
    Task {
      let background = try? await Backup.shared().background
      if background?.handleEvents(identifier: id, completionHandler: completionHandler) != true { completionHandler() }
    }
  }
}

final class SceneDelegate: UIResponder, UIWindowSceneDelegate {
  var window: UIWindow?
  /// The system terminates an app that does not end each identifier.
  private var more = UIBackgroundTaskIdentifier.invalid {
    didSet { if oldValue != .invalid { UIApplication.shared.endBackgroundTask(oldValue) } }
  }
  private var waiting: Task<Void, Never>? { didSet { oldValue?.cancel() } }

  func scene(_ scene: UIScene, willConnectTo session: UISceneSession, options: UIScene.ConnectionOptions) {
    window = (scene as? UIWindowScene).map { UIWindow(windowScene: $0) }
    window?.rootViewController = BackupViewController()
    window?.makeKeyAndVisible()
  }

  /// Pieces that are being made get some 30 s more, so that the system has them when the app is suspended.
  func sceneDidEnterBackground(_ scene: UIScene) {
    more = UIApplication.shared.beginBackgroundTask { [weak self] in self?.more = .invalid }
    waiting = Task {
      if let background = try? await Backup.shared().background, !background.uploads.isEmpty {
        for await _ in background.events() where background.uploads.isEmpty { break }
      }
      if !Task.isCancelled { more = .invalid }
    }
  }

  func sceneWillEnterForeground(_ scene: UIScene) { (more, waiting) = (.invalid, nil) }
}
