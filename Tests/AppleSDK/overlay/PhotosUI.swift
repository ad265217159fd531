// swift-format-ignore-file
// The picker of PhotosUI, which has its configuration, its results and its delegate in Swift. The controller is a class of
// Objective-C there.
@_exported import Photos
import Foundation
import UIKit

public struct PHPickerConfiguration {
  public var selectionLimit: Int { get { fatalError() } set { fatalError() } }
  public init(photoLibrary: PHPhotoLibrary) { fatalError() }
}

public struct PHPickerResult: Hashable {
  public var assetIdentifier: String? { fatalError() }
  public static func == (a: PHPickerResult, b: PHPickerResult) -> Bool { fatalError() }
  public func hash(into hasher: inout Hasher) { fatalError() }
}

@MainActor @preconcurrency public protocol PHPickerViewControllerDelegate: AnyObject {
  func picker(_ picker: PHPickerViewController, didFinishPicking results: [PHPickerResult])
}

@MainActor @preconcurrency public final class PHPickerViewController: UIViewController {
  public weak var delegate: (any PHPickerViewControllerDelegate)?
  public init(configuration: PHPickerConfiguration) { fatalError() }
  public required init?(coder: NSCoder) { fatalError() }
}
