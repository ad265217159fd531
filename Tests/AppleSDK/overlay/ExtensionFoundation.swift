// swift-format-ignore-file
// ExtensionFoundation, as its documentation describes it: what app extensions conform to.

@available(iOS 16.0, macOS 13.0, *)
public protocol AppExtensionConfiguration {}

@available(iOS 16.0, macOS 13.0, *)
public protocol AppExtension {
  associatedtype Configuration: AppExtensionConfiguration
  var configuration: Configuration { get }
  init()
}
