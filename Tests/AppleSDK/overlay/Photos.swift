// swift-format-ignore-file
// The declarations that Photos has in Swift only: the extensions for background uploads, and the size of a resource.
@_exported import Photos
import ExtensionFoundation

@available(iOS 26.1, macOS 27.0, *)
public enum PHBackgroundResourceUploadProcessingResult: Int { case failure, processing, completed }

@available(iOS 26.1, macOS 27.0, *)
public struct BackgroundUploadConfiguration: AppExtensionConfiguration {}

@available(iOS, introduced: 26.1, deprecated: 27.0, message: "use PHBackgroundResourceUploadJobExtension")
@available(macOS, unavailable)
public protocol PHBackgroundResourceUploadExtension: AppExtension {
  func process() -> PHBackgroundResourceUploadProcessingResult
  func notifyTermination()
}
@available(iOS, introduced: 26.1, deprecated: 27.0)
@available(macOS, unavailable)
extension PHBackgroundResourceUploadExtension {
  public var configuration: BackgroundUploadConfiguration { fatalError() }
}

@available(iOS 27.0, macOS 27.0, *)
public protocol PHBackgroundResourceUploadJobExtension: AppExtension {
  func processJobs() async -> PHBackgroundResourceUploadProcessingResult
  func willTerminate() async
}
@available(iOS 27.0, macOS 27.0, *)
extension PHBackgroundResourceUploadJobExtension {
  public var configuration: BackgroundUploadConfiguration { fatalError() }
}

@available(iOS 27.0, macOS 27.0, *)
extension PHAssetResource {
  public var dataSize: Int? { fatalError() }
}
