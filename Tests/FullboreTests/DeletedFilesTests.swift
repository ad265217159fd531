import BlobUpload
import Blobs
import Platform
import Testing

@testable import fullbore

@Suite struct DeletedFilesTests {
  private let scratch = Scratch()

  /// A file of 3 bytes that was in the folder `gallery/day` and on the disk of the scratch folder, or on another one.
  private func intent(onAnotherDisk: Bool = false) -> JournalIntent {
    let path = scratch.file("gallery/day/film.mov")
    var status = stat()
    #expect(path.status(&status) == 0)
    var stamp = FileStamp(status, at: path)
    if onAnotherDisk { (stamp.device, stamp.volume) = (stamp.device + 1, nil) }
    #expect(path.withCString { unlink($0) } == 0)
    return JournalIntent(
      source: path, target: "http://host/film.mov", path: "film.mov", length: 3, validator: stamp.validator)
  }

  private var deleted: DeletedFiles { DeletedFiles(in: [scratch.path.appending("gallery/")]) }

  @Test func aFileIsDeletedAlsoWhereItsFolderIs() {
    let intent = intent()
    #expect(deleted.wasDeleted(intent))
    #expect(scratch.path.appending("gallery/day").withCString { rmdir($0) } == 0)
    #expect(deleted.wasDeleted(intent))
  }

  /// It may be plugged in again.
  @Test func aFileOfAnUnpluggedDiskIsNotDeleted() {
    #expect(!deleted.wasDeleted(intent(onAnotherDisk: true)))
  }

  @Test func withoutTheWatchedFolderNothingIsDeleted() {
    let intent = intent()
    #expect(rename(scratch.path.appending("gallery"), to: "aside"))
    #expect(!deleted.wasDeleted(intent))
  }

  @Test func aFileOfAnotherFolderIsNotTheWatchs() {
    #expect(!DeletedFiles(in: [scratch.path.appending("gal")]).wasDeleted(intent()))
  }

  private func rename(_ path: BytePath, to name: BytePath) -> Bool {
    path.withCString { old in scratch.path.appending(name).withCString { Platform.rename(old, $0) } } == 0
  }
}
