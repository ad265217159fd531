import BlobUpload
import Foundation

// An app that shows `localizedDescription` shows what has failed and what to do, in English. BlobUpload itself does without
// Foundation.

extension UploadError: LocalizedError {
  public var errorDescription: String? { message }
}

extension JournalError: LocalizedError {
  public var errorDescription: String? { message }
}

extension PhotoJobError: LocalizedError {
  public var errorDescription: String? { description }
}
