// swift-format-ignore-file
// The declarations that Photos has in Swift only: the extensions for background uploads, and the size of a resource. The calls that
// switch such an extension on and off are here as Swift imports them: PyObjC's metadata does not have them.
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

@available(iOS 27.0, macOS 27.0, *)
public final class PHAssetResourceUploadJobOptions: NSObject {
  public override init() { fatalError() }
  public var preventsExpensiveNetworkAccess: Bool { get { fatalError() } set { fatalError() } }
}

extension PHPhotoLibrary {
  @available(iOS, introduced: 26.1, deprecated: 27.0)
  @available(macOS, unavailable)
  public func setUploadJobExtensionEnabled(_ enabled: Bool) throws { fatalError() }
  @available(iOS 27.0, macOS 27.0, *)
  public func enableUploadJobExtension(with options: PHAssetResourceUploadJobOptions?) throws { fatalError() }
  @available(iOS 27.0, macOS 27.0, *)
  public func disableUploadJobExtension() throws { fatalError() }
}
