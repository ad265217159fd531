import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// The numbers that a push remembers for photos, so that all files of a photo get the same one.
@Suite struct GroupNumbersTests {
  private let numbers = GroupNumbers(waitsForUnseen: true) { item, _ in item }

  private func group(_ number: Int, isMain: Bool = true) -> FileGroup {
    FileGroup(BytePath("/card/\(number)"), isMain: isMain)
  }

  @Test func onlyTheLatestGroupsAreRemembered() {
    let count = 3 * GroupNumbers.mostGroups
    for number in 0..<count { numbers.end(group(number), at: number % 2 + 1) }
    #expect(numbers.count == GroupNumbers.mostGroups)
    #expect(numbers.isKnown(group(count - 1, isMain: false)) && !numbers.isKnown(group(0, isMain: false)))
    #expect(numbers.number(of: group(count - 1)) == 2 && numbers.number(of: group(count - 2)) == nil)
    #expect(numbers.number(of: group(1)) == nil)
  }

  /// A file that gets a number of its own after its photo has arrived does not change that of the photo.
  @Test func theNumberOfAPhotoThatHasArrivedStays() {
    numbers.note(2, of: group(1, isMain: false))
    #expect(numbers.number(of: group(1)) == 2 && !numbers.isKnown(group(1)))
    numbers.end(group(1), at: 3)
    numbers.note(9, of: group(1, isMain: false))
    #expect(numbers.number(of: group(1)) == 3)
    numbers.note(4, of: group(1))
    #expect(numbers.number(of: group(1)) == 4 && numbers.isKnown(group(1)))
  }

  private func work(_ number: Int, isMain: Bool) -> UploadQueue.Claimed {
    let (url, source) = (HTTPURL("http://media.example/in/")!, PatternSource(length: 1))
    let name = BytePath("\(number).\(isMain ? "jpg" : "mov")")
    var item = UploadItem(
      source: source, info: source.info, identity: BytePath("/card").appending(name),
      target: UploadTarget(endpoint: url, url: url, path: name, length: 1))
    item.group = group(number, isMain: isMain)
    return UploadQueue.Claimed(item, .fresh(1))
  }

  /// Where files get no numbers, a group is forgotten with the last of its files, also if the picture was refused.
  @Test(arguments: [false, true]) func nothingIsRememberedOfFilesThatHaveEnded(_ isRefused: Bool) {
    let order = GroupNumbers(waitsForUnseen: false, numbering: nil)
    let (pictures, films) = ((0..<3).map { work($0, isMain: true) }, (0..<3).map { work($0, isMain: false) })
    order.begin(pictures + films)
    #expect(order.count == 3)
    for (picture, film) in zip(pictures, films) {
      #expect(order.keepsWaiting(film))
      if isRefused { order.note(UploadError(.giveUp, .file, "refused"), of: picture.item) }
      #expect(order.end(picture).count == 1)
      #expect(!order.keepsWaiting(film))
      #expect((order.refusal(of: film) != nil) == isRefused)
      #expect(order.end(film).isEmpty)
    }
    #expect(order.count == 0)
  }
}
