import BlobMedia
import Blobs
import Testing

@testable import BlobApple

/// What an iPhone's library has of assets of each kind, as PhotoKit lists it.
struct AssetPlanTests {
  private let heic = AssetResource(kind: .photo, filename: "IMG_0001.HEIC")
  private let film = AssetResource(kind: .pairedVideo, filename: "IMG_0001.MOV")
  private let edit = AssetResource(kind: .editedPhoto, filename: "FullSizeRender.heic")
  private let editedFilm = AssetResource(kind: .editedPairedVideo, filename: "FullSizeRender.mov")
  private let adjustments = AssetResource(kind: .adjustments, filename: "Adjustments.plist")

  private func names(_ resources: [AssetResource], _ edits: GalleryEdits = .both) -> [String] {
    AssetPlan(edits).items(of: resources).map { $0.name }
  }

  @Test func aPlainPhotoIsOneFile() { #expect(names([heic]) == ["IMG_0001.HEIC"]) }

  @Test func aLivePhotoIsItsPictureAndThenItsFilm() {
    #expect(names([film, heic]) == ["IMG_0001.HEIC", "IMG_0001.MOV"])
    let items = AssetPlan().items(of: [film, heic])
    #expect(items.map { $0.index } == [1, 0])
    #expect(items[1].facts(among: items, captured: nil).metadata["pair"] == "IMG_0001.HEIC")
  }

  @Test func anEditedLivePhotoHasTheNamesOfACameraRoll() {
    let all = [heic, film, adjustments, edit, editedFilm]
    #expect(
      names(all) == ["IMG_0001.HEIC", "IMG_E0001.heic", "IMG_0001.MOV", "IMG_E0001.mov", "IMG_0001.AAE"])
    #expect(names(all, .original) == ["IMG_0001.HEIC", "IMG_0001.MOV", "IMG_0001.AAE"])
    #expect(names(all, .current) == ["IMG_E0001.heic", "IMG_E0001.mov"])
    let items = AssetPlan().items(of: all)
    #expect(items[1].facts(among: items, captured: nil).metadata["edit-of"] == "IMG_0001.HEIC")
  }

  /// Only the picture was edited: the film has no edit that could take its place.
  @Test func anOriginalWithoutAnEditOfItsOwnIsNeverLeftOut() {
    #expect(names([heic, film, edit], .current) == ["IMG_E0001.heic", "IMG_0001.MOV"])
    let raw = AssetResource(kind: .alternatePhoto, filename: "IMG_0001.DNG")
    #expect(names([heic, raw, edit], .current) == ["IMG_0001.DNG", "IMG_E0001.heic"])
  }

  @Test func aNameWithoutANumberIsMarkedAtItsEnd() {
    let photo = AssetResource(kind: .photo, filename: "Sommer.jpg")
    #expect(names([photo, edit]) == ["Sommer.jpg", "Sommer-edited.heic"])
    #expect(GalleryName("Sommer-edited.heic").isRendered)
  }

  @Test func twoFilesOfAnAssetNeverHaveOneName() {
    let second = AssetResource(kind: nil, filename: "img_0001.heic")
    #expect(names([heic, second, second]) == ["IMG_0001.HEIC", "img_0001 2.heic", "img_0001 3.heic"])
  }

  @Test func resourcesForPhotosOnlyAreLeftOutAndUnknownKindsAreSent() {
    let base = AssetResource(kind: .adjustmentBasePhoto, filename: "IMG_0001.HEIC")
    let proxy = AssetResource(kind: .photoProxy, filename: "IMG_0001.JPG")
    let future = AssetResource(kind: AssetResource.Kind(rawValue: 99), filename: "IMG_0001.XYZ")
    #expect(names([heic, base, proxy, future]) == ["IMG_0001.HEIC", "IMG_0001.XYZ"])
    #expect(names([]) == [])
  }

  @Test(
    arguments: [
      (3169, BlobError.Code.invalidated), (3301, .invalidated), (3303, .notFound), (3311, .permission),
      (3072, .invalidated),
      (3302, .changed), (3164, .io), (4711, .io),
    ])
  func errorsOfPhotoKitSayWhatToDo(_ code: Int, _ expected: BlobError.Code) {
    let error = PhotoFailure.error(
      domain: PhotoFailure.domain, code: code, "it failed", "read photo IMG_0001.HEIC", cause: nil)
    #expect(error.code == expected)
    #expect(error.message.hasPrefix("read photo IMG_0001.HEIC: it failed"))
    #expect(PhotoFailure.error(domain: "other", code: code, "it failed", "read", cause: nil).code == .io)
  }

  /// PhotoKit passes on the errors of those who download a photo from iCloud.
  @Test(arguments: [
    ("NSURLErrorDomain", -1009), ("NSURLErrorDomain", -1005), ("CKErrorDomain", 3),
    ("CloudPhotoLibraryErrorDomain", 1006),
    (PhotoFailure.domain, -1),
    // The connection to the process that has the library was interrupted, or is no longer valid.
    ("NSCocoaErrorDomain", -1), ("NSCocoaErrorDomain", 4097), ("NSCocoaErrorDomain", 4099),
  ])
  func aDownloadThatMayGoOnLaterIsNotGivenUp(_ domain: String, code: Int) {
    let error = PhotoFailure.error(domain: domain, code: code, "no network", "read photo IMG_0001.HEIC", cause: nil)
    #expect(error.code == .invalidated)
    #expect(error.message.contains("no network") && error.message.contains("\(domain) \(code)"))
    // The same as the cause of an error that says nothing.
    for other in ["NSCocoaErrorDomain", PhotoFailure.domain] {
      let cause = PhotoFailure.Identity(domain: domain, code: code)
      let outer = PhotoFailure.error(
        domain: other, code: 4, underlying: [.init(domain: "other", code: 1), cause], "it failed", "read", cause: nil)
      #expect(outer.code == .invalidated && outer.message.contains("\(domain) \(code)"))
    }
  }

  @Test(arguments: [(nil, nil), (0, 0), (4096, 4096), (-1, nil)] as [(Int?, Int64?)])
  func theExpectedLengthIsThatOfTheSystemOrNil(_ told: Int?, _ expected: Int64?) {
    #expect(AssetResource.expectedLength(of: told) == expected)
  }

  /// A cause that may pass does not turn an error that the user must mend into one that is tried again.
  @Test func anErrorThatSaysWhatToDoIsNotRepeated() {
    let cause = PhotoFailure.Identity(domain: "NSURLErrorDomain", code: -1009)
    let error = PhotoFailure.error(
      domain: PhotoFailure.domain, code: 3311, underlying: [cause], "it failed", "read", cause: nil)
    #expect(error.code == .permission)
  }
}
