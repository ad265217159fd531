import BlobApple
import UIKit

/// An app that uploads the photo library to `Backup.server`, in front and in the background.
@main
final class AppDelegate: UIResponder, UIApplicationDelegate {
  /// The system has uploaded something while the app was suspended or terminated.
  func application(
    _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    completionHandler: @escaping () -> Void
  ) {
    Task {
      let background = try? await Backup.shared().background
      if background?.handleEvents(identifier: identifier, completionHandler: completionHandler) != true {
        completionHandler()
      }
    }
  }
}

final class SceneDelegate: UIResponder, UIWindowSceneDelegate {
  var window: UIWindow?

  func scene(_ scene: UIScene, willConnectTo session: UISceneSession, options: UIScene.ConnectionOptions) {
    guard let scene = scene as? UIWindowScene else { return }
    window = UIWindow(windowScene: scene)
    window?.rootViewController = BackupViewController()
    window?.makeKeyAndVisible()
  }
}
