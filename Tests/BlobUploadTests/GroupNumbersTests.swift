import BlobUpload
import Blobs
import Testing

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
}
