import Blobs
import Platform
import Testing

@testable import Blobs

struct FileVolumeTests {
  /// Magic numbers of statfs(2): file systems with stable inode numbers, and those that make them up.
  @Test(arguments: [
    (0xEF53, true, true), (0x9123_683E, true, true), (0x2FC1_2FC1, true, true), (0x5846_5342, true, false),
    (0xF2F5_2010, true, false), (0x0102_1994, true, false), (0x794C_7630, true, false),
    (0x4D44, false, false), (0x2011_BAB0, false, false), (0x5346_544E, false, false), (0x6573_5546, false, false),
    (0x6969, false, false), (0xFF53_4D42, false, false), (0x0102_1997, false, false), (0x1234, false, false),
  ])
  func onlyKnownFileSystemsAreReliedOn(_ kind: UInt64, _ keepsNumbers: Bool, _ hasID: Bool) {
    let volume = FileVolume(kind: kind, id: 7)
    #expect(volume.keepsNumbers == keepsNumbers)
    #expect(volume.id == (hasID ? 7 : nil))
  }

  /// A disk that is connected elsewhere has another device number, but keeps its own id.
  @Test func aFileIsKnownByItsVolumeWhateverTheDevice() {
    let id = FileVolume(keepsNumbers: true, id: 7)
    func validator(_ device: UInt64, _ volume: FileVolume?) -> Validator {
      var stamp = FileStamp(device: device, inode: 2, size: 3, modified: 4, changed: 5)
      stamp.volume = volume
      return stamp.validator
    }
    #expect(validator(1, id) == validator(9, id))
    #expect(validator(1, id) != validator(1, FileVolume(keepsNumbers: true, id: 8)))
    #expect(validator(1, FileVolume(keepsNumbers: true)) != validator(9, FileVolume(keepsNumbers: true)))
    #expect(validator(1, nil) != validator(9, nil))
  }

  @Test func thePathAndTheOpenFileAgree() throws {
    let file = try TemporaryFile([1, 2, 3])
    var status = stat()
    try #require(file.path.withCString { stat($0, &status) } == 0)
    let stamp = FileStamp(status, at: file.path)
    #expect(try FileSource(file.path).info() == stamp.info)
    #expect(stamp.volume != nil)
    // /proc makes inode numbers up, like a card's file system.
    let version: BytePath = "/proc/version"
    try #require(version.withCString { stat($0, &status) } == 0)
    #expect(FileStamp(status, at: version).volume?.keepsNumbers == false)
    #expect(FileStamp(status, at: version).info.wantsTrace)
  }

  /// Checksums are only useful for files that may return with other numbers.
  @Test func onlyAnInstanceThatMayChangeIsTraced() {
    let instance = Validator(version: "1", instance: "2")
    #expect(BlobInfo(length: 1, validator: instance).wantsTrace)
    #expect(!BlobInfo(length: 1, validator: instance, instanceLasts: true).wantsTrace)
    #expect(!BlobInfo(length: 1, validator: Validator(version: "1")).wantsTrace)
    #expect(!BlobInfo(length: 1).wantsTrace)
  }
}
