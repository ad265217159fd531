import Blobs

/// Translates errors of PhotoKit into the errors by which an upload decides whether to go on.
enum PhotoFailure {
  /// The name of PhotoKit's error domain.
  static let domain = "PHPhotosErrorDomain"

  /// An error as the system identifies it.
  struct Identity: Hashable {
    var domain: String
    var code: Int

    /// PhotoKit passes on the errors of those who download from iCloud.
    private static let downloadDomains: Set = [
      "NSURLErrorDomain", "CKErrorDomain", "CloudPhotoLibraryErrorDomain",
    ]

    /// The same bytes may be had again.
    var mayPass: Bool {
      switch (domain, code) {
      case _ where Self.downloadDomains.contains(domain): true
      // An internal error, which is also reported of downloads that break off.
      case (PhotoFailure.domain, -1), ("NSCocoaErrorDomain", -1): true
      // NSXPCConnectionInterrupted and NSXPCConnectionInvalid: the process that has the library was started again.
      case ("NSCocoaErrorDomain", 4097), ("NSCocoaErrorDomain", 4099): true
      default: false
      }
    }
  }

  /// `code` is that of `PHPhotosError`; `underlying`: the errors that have caused this one. An error after which the same
  /// bytes may be had again is `.invalidated`, so that `ReopeningSource` goes on at the same byte, and an upload waits for
  /// the source if it cannot.
  static func error(
    domain: String, code: Int, underlying: [Identity] = [], _ text: String, _ operation: String, cause: (any Error)?
  ) -> BlobError {
    func error(_ code: BlobError.Code, _ advice: String) -> BlobError {
      BlobError(code, "\(operation): \(text)\(advice)", cause: cause)
    }
    func unknown(_ advice: String) -> BlobError {
      guard let reason = underlying.first(where: \.mayPass) else { return error(.io, advice) }
      return error(.invalidated, " (\(domain) \(code), because of \(reason.domain) \(reason.code))")
    }
    if Identity(domain: domain, code: code).mayPass { return error(.invalidated, " (\(domain) \(code))") }
    guard domain == Self.domain else { return unknown("") }
    switch code {
    // Cancelled by the system: nobody reads what this process has cancelled.
    case 3072: return error(.invalidated, "")
    case 3114, 3142, 3143, 3301: return error(.invalidated, "")
    case 3164: return error(.io, ". The original is in iCloud: allow network access, or download it first")
    // The download from iCloud broke off.
    case 3169: return error(.invalidated, "")
    case 3201, 3303: return error(.notFound, "")
    case 3302: return error(.changed, "")
    case 3305: return error(.io, ". Free some space: the system keeps what it downloads from iCloud")
    case 3310, 3311: return error(.permission, ". Allow access to photos in Settings")
    default: return unknown(" (\(domain) \(code))")
    }
  }
}

extension PhotoJobError {
  /// An error of a change of jobs. `code` is that of `PHPhotosError`.
  init(domain: String, code: Int, _ text: String) {
    let isPhotoKits = domain == PhotoFailure.domain
    switch code {
    case 3307 where isPhotoKits: self.init(.limit, text)
    case 3201 where isPhotoKits, 3303 where isPhotoKits: self.init(.gone, text)
    default: self.init(.failed, "\(text) (\(domain) \(code))")
    }
  }
}
