import Testing

@testable import BlobMedia

/// Whether two names belong to one photo.
struct StemTests {
  private static func stems(
    _ name: String, _ other: String
  ) -> (mayBeOne: Bool, areOne: Bool) {
    Array(name.utf8).withUnsafeBytes { name in
      Array(other.utf8).withUnsafeBytes { other in
        (
          GalleryNameParts.mayHaveOneStem(name, other),
          GalleryNameParts.haveOneStem(GalleryNameParts(name), in: name, GalleryNameParts(other), in: other)
        )
      }
    }
  }

  /// The names are such that the bytes around the end of a stem differ in every way.
  @Test func theQuickTestRefusesNoPairOfOnePhoto() {
    let stems = [
      "IMG_1", "IMG_12", "IMG_123", "IMG_E12", "IMG_O12", "IMG_E1", "IMGE12", "IMG_1a", "IMG_2", "a", "IMG_",
    ]
    let ends = [
      "", ".", ".jpg", ".JPG", ".mov", ".aae", ".cr2", ".cr2.xmp", ".jpg.xmp", "-edited.jpg", "-edited", "-edit.jpg",
    ]
    let names = stems.flatMap { stem in ends.map { stem + $0 } }
    var pairs = 0
    for name in names {
      for other in names {
        let found = Self.stems(name, other)
        #expect(!found.areOne || found.mayBeOne, "\(name) and \(other)")
        if found.areOne { pairs += 1 }
      }
    }
    #expect(pairs > names.count)
  }

  @Test func theQuickTestRefusesNeighboursInAFolder() {
    #expect(!Self.stems("IMG_0001.JPG", "IMG_0002.JPG").mayBeOne)
    #expect(!Self.stems("DSC01234.ARW", "DSC01235.JPG").mayBeOne)
  }
}
