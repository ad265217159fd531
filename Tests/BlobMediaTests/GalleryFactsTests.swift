import BlobMedia
import Blobs
import Testing

/// The metadata sent for camera roll files: from a phone, and from an export.
@Suite struct GalleryFactsTests {
  private static let phone: [BytePath] = [
    "IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC", "IMG_0001.AAE", "IMG_0002.DNG", "IMG_0002.JPG", "IMG_0003.HEIC",
    "IMG_0003.MOV", "IMG_E0003.HEIC", "IMG_E0003.MOV", "IMG_0004.MOV", "IMG_0005.PNG",
    "00012IMG_00012_BURST20240102030405.JPG", "notes.txt",
  ]

  private func told(
    _ name: BytePath, _ edits: GalleryEdits = .current, in names: [BytePath] = phone
  ) -> [String: String] {
    Gallery(edits).facts(of: GalleryName(name), Set(names).contains).metadata
  }

  @Test func pairsNameEachOtherAsTheyAreSent() {
    #expect(
      told("IMG_0001.HEIC", .original) == ["kind": "photo", "pairing": "live-photo", "pair": "IMG_0001.MOV"])
    #expect(told("IMG_0001.MOV", .original) == ["kind": "video", "pairing": "live-photo", "pair": "IMG_0001.HEIC"])
    // The edited still is sent; its film was not rendered again.
    #expect(told("IMG_0001.MOV") == ["kind": "video", "pairing": "live-photo", "pair": "IMG_E0001.HEIC"])
    #expect(
      told("IMG_E0001.HEIC")
        == ["kind": "photo", "pairing": "live-photo", "pair": "IMG_0001.MOV", "edit-of": "IMG_0001.HEIC"])
    #expect(
      told("IMG_E0003.MOV")
        == ["kind": "video", "pairing": "live-photo", "pair": "IMG_E0003.HEIC", "edit-of": "IMG_0003.MOV"])
    #expect(told("IMG_0002.DNG") == ["kind": "raw", "pairing": "raw+picture", "pair": "IMG_0002.JPG"])
    #expect(told("IMG_0002.JPG") == ["kind": "photo", "pairing": "raw+picture", "pair": "IMG_0002.DNG"])
  }

  @Test func aFileWithoutACounterpartHasNoPair() {
    #expect(told("IMG_0004.MOV") == ["kind": "video"])
    #expect(told("IMG_0005.PNG") == ["kind": "photo"])
    #expect(told("notes.txt") == [:])
    #expect(told("IMG_0001.AAE") == ["kind": "sidecar", "sidecar-of": "IMG_0001.HEIC"])
    #expect(told("00012IMG_00012_BURST20240102030405.JPG") == ["kind": "photo", "burst": "BURST20240102030405"])
  }

  @Test func anExportIsUnderstoodToo() {
    let names: [BytePath] = [
      "sea.jpg", "sea-edited.jpg", "sea.mp4", "20240102_030405_BURST001_COVER.jpg", "20240102_030405_BURST002.jpg",
      "a.CR2", "a.cr2.xmp",
    ]
    #expect(
      told("sea-edited.jpg", in: names)
        == ["kind": "photo", "pairing": "live-photo", "pair": "sea.mp4", "edit-of": "sea.jpg"])
    let burst = ["20240102_030405_BURST001_COVER.jpg", "20240102_030405_BURST002.jpg"].map {
      told($0, in: names)["burst"]
    }
    #expect(burst[0] != nil && burst[0] == burst[1])
    #expect(told("a.cr2.xmp", in: names) == ["kind": "sidecar", "sidecar-of": "a.CR2"])
  }

  @Test func theCaptureDateIsWrittenAsTheCameraHadIt() {
    var facts = GalleryFacts(kind: .photo)
    facts.captured = CaptureDate(2019, 5, 6, 7, 8, 9)
    #expect(facts.metadata == ["kind": "photo", "captured": "2019-05-06T07:08:09"])
  }
}
