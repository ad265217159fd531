// swift-format-ignore-file
@_exported import UIKit

extension UIApplicationDelegate {
  @MainActor public static func main() { fatalError() }
}

extension UIControl.State {
  public static var normal: UIControl.State { fatalError() }
}
