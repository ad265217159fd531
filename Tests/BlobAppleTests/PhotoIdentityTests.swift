import BlobApple
import Blobs
import Testing

/// The names by which a later launch of the app finds a photo.
struct PhotoIdentityTests {
  @Test(arguments: [
    ("B84E8479-475C-4727-A4A4-B77AA9980897/L0/001", AssetResource(kind: .photo, filename: "IMG_0001.HEIC")),
    ("a:b:c", AssetResource(kind: .editedPhoto, filename: "Full:Size Render ü.heic")),
    ("ü/1", AssetResource(kind: nil, filename: "")),
    ("", AssetResource(kind: .photoProxy, filename: "1:2")),
  ])
  func photoIsFoundByItsIdentity(asset: String, resource: AssetResource) {
    let identity = PhotoIdentity(asset: asset, resource: resource)
    #expect(PhotoIdentity(identity.path) == identity)
    #expect(!identity.path.isAbsolute, "a file would be looked for")
  }

  @Test func photosHaveDifferentIdentities() {
    let identities = [
      PhotoIdentity(asset: "A/1", resource: AssetResource(kind: .photo, filename: "1.JPG")),
      PhotoIdentity(asset: "A/", resource: AssetResource(kind: .photo, filename: "11.JPG")),
      PhotoIdentity(asset: "A/1", resource: AssetResource(kind: nil, filename: "1.JPG")),
    ]
    #expect(Set(identities.map(\.path)).count == 3)
  }

  @Test(arguments: [
    "", "photo", "photo:1:3", "photo:1:-1:A/1x", "photo:1:4:A/1", "photo:1::A/1x", "photo:x:3:A/1x", "photo:99:3:A/1x",
    "video:1:3:A/1x", "photo:1:99999999999999999999:A", "photo:1:1:üx", "photo:1.0:1:Ax", "photo:1.:1:Ax",
    "photo:1.x:1:Ax", "/photo:1:3:A/1x",
  ])
  func otherPathsAreNone(path: String) {
    #expect(PhotoIdentity(BytePath(path)) == nil)
  }

  @Test(arguments: [
    (
      "B84E8479-475C-4727-A4A4-B77AA9980897/L0/001", "IMG_0001.HEIC",
      "B84E8479-475C-4727-A4A4-B77AA9980897/IMG_0001.HEIC"
    ),
    ("A", "../../x", "A/__/__/x"), ("/", "..", "__"), ("", "", "_"), ("A/1", "a//b", "A/a/b"),
  ])
  func pathsStayBelowTheFolderOfTheAsset(asset: String, name: String, path: BytePath) {
    #expect(PhotoPath.usual(asset, name) == path)
  }
}
