import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import Testing

@testable import fullbore

/// Files of one photo follow each other in a feed, and are found there.
struct PhotoBatchesTests {
  private func item(_ identity: BytePath) -> UploadItem {
    let url = HTTPURL("http://media.example/in/")!
    let source = PatternSource(length: 1)
    return UploadItem(
      source: source, info: source.info, identity: identity,
      target: UploadTarget(endpoint: url, url: url, path: identity.name, length: 1))
  }

  /// The batches of a feed. A file is followed by the key of its group, and the main file by a star.
  private func batches(_ feed: [[BytePath]]) async -> [[String]] {
    let rest = Mutex(feed.map { $0.map(item) }[...])
    let photos = PhotoBatches()
    var found: [[String]] = []
    while let batch = await photos.next(
      naming: { $0 },
      { () async -> PhotoBatches.Found? in rest.withLock { rest in rest.popFirst().map { .init(items: $0) } } })
    {
      found.append(
        batch.map { item in
          let group = item.group.map { " \($0.key.name)\($0.isMain ? "*" : "")" } ?? ""
          return "\(item.identity.name)\(group)"
        })
    }
    return found
  }

  @Test func theFilesOfAPhotoAreInOneBatch() async {
    let found = await batches([
      ["/card/IMG_1.JPG", "/card/IMG_2.HEIC"], ["/card/IMG_2.MOV"], [], ["/card/IMG_E2.HEIC", "/card/IMG_3.JPG"],
      ["/card/notes.txt"],
    ])
    #expect(
      found == [
        ["IMG_1.JPG"], ["IMG_2.HEIC IMG_2*", "IMG_2.MOV IMG_2", "IMG_E2.HEIC IMG_2"], ["IMG_3.JPG", "notes.txt"],
      ])
  }

  @Test func thePictureIsTheMainFileInWhateverOrder() async {
    let found = await batches([["/card/a.xmp", "/card/a.MOV", "/card/a.CR2", "/card/a.JPG"]])
    #expect(found == [["a.JPG a*", "a.CR2 a", "a.MOV a", "a.xmp a"]])
  }

  @Test func filesThatBelongToNoOtherHaveNoGroup() async {
    let found = await batches([
      ["/card/a.JPG", "/other/a.MOV", "/card/b.txt", "/card/b.pdf", "https://media.example/c.jpg"],
      ["https://media.example/c.mov"],
    ])
    #expect(found.flatMap(\.self) == ["a.JPG", "a.MOV", "b.txt", "b.pdf", "c.jpg", "c.mov"])
  }

  /// The servers of sources at URLs may never respond.
  @Test func theLastPhotoDoesNotWaitForSourcesAtURLs() async {
    let photos = PhotoBatches()
    let feed: [PhotoBatches.Found] = [
      .init(items: [item("/card/IMG_1.JPG")]), .init(items: [item("/card/IMG_1.MOV")]),
      .init(items: [], mayHaveFiles: false), .init(items: [item("https://media.example/c.jpg")], mayHaveFiles: false),
    ]
    let rest = Mutex(feed[...])
    let found = await photos.next(
      naming: { $0 }, { () async -> PhotoBatches.Found? in rest.withLock { $0.popFirst() } })
    #expect(found?.map(\.identity) == ["/card/IMG_1.JPG", "/card/IMG_1.MOV"] && found?.first?.group != nil)
    #expect(rest.withLock { $0.count } == 1)
  }

  /// A rendered edit belongs to the photo of its original, which may be left out.
  @Test(arguments: [["/card/IMG_1.JPG"], []] as [[BytePath]])
  func aRenderedEditBelongsToItsOriginal(_ originals: [BytePath]) async {
    let found = await batches([originals + ["rendition:90:/card/IMG_1.JPG", "/card/IMG_1.MOV"]])
    let first = originals.isEmpty ? [] : ["IMG_1.JPG IMG_1*"]
    #expect(found == [first + ["IMG_1.JPG IMG_1\(originals.isEmpty ? "*" : "")", "IMG_1.MOV IMG_1"]])
  }

  /// Names that are no photo's must not be kept in memory.
  @Test func manyFilesOfOneNameDoNotWait() async {
    let many = (0..<300).map { _ in BytePath("/card/a.JPG") }
    let found = await batches([many, ["/card/b.JPG"]])
    #expect(found.map(\.count) == [300, 1])
  }

  @Test(
    arguments: [
      ("/a/IMG_1.JPG", "/a/IMG_1.MOV", true), ("/a/IMG_1.JPG", "/a/IMG_E1.JPG", true),
      ("/a/IMG_1.JPG", "/a/IMG_O1.AAE", true), ("/a/IMG_1.CR2", "/a/IMG_1.CR2.xmp", true),
      ("/a/x.jpg", "/a/x-edited.jpg", true), ("/a/x.jpg", "/a/x.JPG", true), ("/a/x.jpg", "/a/x-edited.xmp", false),
      ("/a/x.jpg", "/a/xy.jpg", false), ("/a/x.jpg", "/b/x.jpg", false), ("/a/x.jpg", "/a/x.pdf", false),
      ("/a/IMG_E1.JPG", "/a/IMG_2.JPG", false), ("/a/.jpg", "/a/.jpg", false), ("/a/jpg", "/a/jpg", false),
    ] as [(BytePath, BytePath, Bool)])
  func filesOfOnePhotoHaveOneStem(_ file: BytePath, _ other: BytePath, _ areOne: Bool) {
    #expect(PhotoPlace.areOfOnePhoto(file, other) == areOne)
    #expect(PhotoPlace.areOfOnePhoto(other, file) == areOne)
    let places = (PhotoPlace(file)?.photo, PhotoPlace(other)?.photo)
    #expect((places.0 != nil && places.0 == places.1) == areOne)
  }

  /// A folder whose files are in their order already needs no other one.
  @Test func anOrderIsMadeOnlyWhereItIsNeeded() {
    func order(_ names: [BytePath]) -> [Int]? { PhotoPlace.order(of: names.count) { PhotoPlace(names[$0]) } }
    #expect(order(["a.jpg", "b.jpg", "c.txt"]) == nil)
    #expect(order(["a.jpg", "a.mov", "b.jpg"]) == nil)
    #expect(order(["a.mov", "b.jpg", "c.txt", "a.jpg"]) == [3, 0, 1, 2])
    #expect(order(["x.txt", "a.aae", "b.jpg", "a.cr2", "a.jpg", "b.mov"]) == [0, 4, 3, 1, 2, 5])
    #expect(order([]) == nil)
  }
}
