import BlobApple
import UIKit

/// An app that uploads the photo library to `Backup.server`, in front and in the background.
@main
final class AppDelegate: UIResponder, UIApplicationDelegate {
  /// Made at each launch, also when the system launches the app for its uploads: what earlier launches have begun goes on.
  let backup = Task { try await Backup() }

  func application(
    _ application: UIApplication, configurationForConnecting session: UISceneSession,
    options: UIScene.ConnectionOptions
  ) -> UISceneConfiguration {
    let configuration = UISceneConfiguration(name: nil, sessionRole: session.role)
    configuration.delegateClass = SceneDelegate.self
    return configuration
  }

  /// The system has uploaded something while the app was suspended or terminated.
  func application(
    _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    completionHandler: @escaping () -> Void
  ) {
    Task {
      guard let backup = try? await backup.value else { return completionHandler() }
      if !backup.background.handleEvents(identifier: identifier, completionHandler: completionHandler) {
        completionHandler()
      }
    }
  }
}

final class SceneDelegate: UIResponder, UIWindowSceneDelegate {
  private var window: UIWindow?

  func scene(_ scene: UIScene, willConnectTo session: UISceneSession, options: UIScene.ConnectionOptions) {
    guard let scene = scene as? UIWindowScene, let app = UIApplication.shared.delegate as? AppDelegate else { return }
    let window = UIWindow(windowScene: scene)
    window.rootViewController = BackupViewController(app.backup)
    window.makeKeyAndVisible()
    self.window = window
  }
}
