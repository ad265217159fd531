import BlobMedia
import Blobs
import Testing

/// Folders as cameras, phones and exports create them, and the files that are sent from each.
@Suite struct GalleryTests {
  struct Roll: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let names: [BytePath]
    let current: [BytePath]
    let original: [BytePath]

    init(_ description: String, _ names: [BytePath], current: [BytePath]? = nil, original: [BytePath]? = nil) {
      (testDescription, self.names) = (description, names)
      (self.current, self.original) = (current ?? names, original ?? names)
    }
  }

  static let rolls = [
    Roll("plain photos and films", ["IMG_0001.HEIC", "IMG_0002.JPG", "IMG_0003.MOV", "DSC01234.JPG"]),
    Roll(
      "an edit with its original and its sidecar", ["IMG_0001.HEIC", "IMG_E0001.HEIC", "IMG_0001.AAE"],
      current: ["IMG_E0001.HEIC"], original: ["IMG_0001.HEIC"]),
    Roll(
      "an edit in another format", ["IMG_0001.HEIC", "IMG_E0001.JPG", "IMG_O0001.AAE", "IMG_0001.AAE"],
      current: ["IMG_E0001.JPG"], original: ["IMG_0001.HEIC"]),
    Roll(
      "small letters", ["IMG_0001.jpeg", "IMG_E0001.jpeg", "IMG_0001.aae"], current: ["IMG_E0001.jpeg"],
      original: ["IMG_0001.jpeg"]),
    Roll("a Live Photo", ["IMG_0001.HEIC", "IMG_0001.MOV"]),
    Roll(
      "a Live Photo with an edited picture and film",
      ["IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC", "IMG_E0001.MOV", "IMG_0001.AAE"],
      current: ["IMG_E0001.HEIC", "IMG_E0001.MOV"], original: ["IMG_0001.HEIC", "IMG_0001.MOV"]),
    Roll(
      "a Live Photo of which only the picture was rendered",
      ["IMG_0001.HEIC", "IMG_0001.MOV", "IMG_E0001.HEIC"], current: ["IMG_0001.MOV", "IMG_E0001.HEIC"],
      original: ["IMG_0001.HEIC", "IMG_0001.MOV"]),
    Roll(
      "a film that was cut", ["IMG_0001.MOV", "IMG_E0001.MOV", "IMG_0001.AAE"], current: ["IMG_E0001.MOV"],
      original: ["IMG_0001.MOV"]),
    Roll("RAW and JPEG", ["IMG_0001.CR2", "IMG_0001.JPG", "_DSC0002.NEF", "_DSC0002.JPG"]),
    Roll(
      "RAW, JPEG and an edit", ["IMG_0001.DNG", "IMG_0001.JPG", "IMG_E0001.JPG"],
      current: ["IMG_0001.DNG", "IMG_E0001.JPG"], original: ["IMG_0001.DNG", "IMG_0001.JPG"]),
    Roll("an edit that nobody rendered", ["IMG_0001.HEIC", "IMG_0001.AAE"], original: ["IMG_0001.HEIC"]),
    Roll("sidecars that hold more than edits", ["IMG_0001.CR2", "IMG_0001.xmp", "IMG_0002.JPG", "IMG_0002.JPG.xmp"]),
    Roll("an edit whose original is gone", ["IMG_E0001.HEIC"]),
    Roll(
      "an export", ["sea.jpg", "sea-edited.jpg", "sea.jpg.json"], current: ["sea-edited.jpg", "sea.jpg.json"],
      original: ["sea.jpg", "sea.jpg.json"]),
    Roll("names that only look like it", ["IMG_Edit.JPG", "IMG_.JPG", "IMG_E.JPG", "E0001.JPG", ".AAE", "IMG_0001"]),
    Roll("a series", ["IMG_20240102_030405_BURST001_COVER.jpg", "IMG_20240102_030405_BURST002.jpg"]),
  ]

  @Test(arguments: rolls) func theChosenEditsAreTaken(_ roll: Roll) {
    func taken(_ edits: GalleryEdits) -> [BytePath] {
      let names = Set(roll.names)
      return roll.names.filter { Gallery(edits).choice(GalleryName($0), names.contains) == .taken }
    }
    #expect(taken(.current) == roll.current)
    #expect(taken(.original) == roll.original)
    #expect(taken(.both) == roll.names)
  }

  @Test func aFileThatIsLeftOutHasAReason() {
    let names: Set<BytePath> = ["IMG_0001.HEIC", "IMG_E0001.JPG"]
    let choice = Gallery(.current).choice(GalleryName("IMG_0001.HEIC"), names.contains)
    #expect(choice == .leftOut(reason: "its edit IMG_E0001.JPG is sent"))
  }

  @Test(
    arguments: [
      ("IMG_0001.MOV", "IMG_0001.HEIC"), ("IMG_E0001.JPG", "IMG_0001.HEIC"), ("IMG_0001.AAE", "IMG_0001.HEIC"),
      ("IMG_O0001.AAE", "IMG_0001.HEIC"), ("IMG_0001.HEIC", "IMG_0001.HEIC"), ("IMG_0002.MOV", "IMG_0002.MOV"),
      ("IMG_0003.CR2.xmp", "IMG_0003.CR2"), ("IMG_0003.CR2", "IMG_0003.CR2"), ("notes.txt", "notes.txt"),
      ("IMG_E0004.MOV", "IMG_0004.MOV"),
    ] as [(BytePath, BytePath)])
  func filesOfOnePhotoHaveTheSameLeader(_ name: BytePath, _ leader: BytePath) {
    let names: Set<BytePath> = ["IMG_0001.HEIC", "IMG_0003.CR2", "IMG_0004.MOV"]
    #expect(Gallery().leader(of: GalleryName(name), names.contains) == leader)
  }

  @Test(
    arguments: [
      ("IMG_0001.HEIC", ["IMG_0001.MOV"]), ("IMG_0003.JPG", ["IMG_0003.CR2"]), ("IMG_0003.CR2", ["IMG_0003.JPG"]),
      ("IMG_0004.MOV", []), ("notes.txt", []),
    ] as [(BytePath, [BytePath])])
  func theDateOfAPhotoMayComeFromItsCompanions(_ leader: BytePath, _ others: [BytePath]) {
    let names: Set<BytePath> = [
      "IMG_0001.HEIC", "IMG_0001.MOV", "IMG_0001.AAE", "IMG_0003.CR2", "IMG_0003.JPG", "IMG_0004.MOV", "notes.txt",
    ]
    #expect(Gallery().companions(of: GalleryName(leader), names.contains) == others)
  }

  @Test(
    arguments: [
      ("IMG_20240102_030405_BURST001_COVER.jpg", "IMG_20240102_030405_"),
      ("IMG_20240102_030405_BURST012.jpg", "IMG_20240102_030405_"),
      ("00012IMG_00012_BURST20240102030405123.jpg", "BURST20240102030405123"), ("STARBURST.jpg", nil),
      ("IMG_1.jpg", nil),
    ] as [(BytePath, BytePath?)])
  func aSeriesHasAName(_ name: BytePath, _ burst: BytePath?) { #expect(GalleryName(name).burst == burst) }
}
