// swift-format-ignore-file
@_exported import UIKit

extension UIApplicationDelegate {
  @MainActor public static func main() { fatalError() }
}

extension UIControl.State {
  public static var normal: UIControl.State { fatalError() }
}

extension UIAction {
  @MainActor @preconcurrency public convenience init(title: String, handler: @escaping @MainActor (UIAction) -> Void) { fatalError() }
}

extension UIButton {
  @MainActor @preconcurrency public convenience init(type buttonType: UIButton.ButtonType = .system, primaryAction: UIAction?) { fatalError() }
}
