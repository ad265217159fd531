import Blobs
import Testing

@testable import BlobUpload

/// Names that count on where another file has the name.
@Suite struct NumberedNameTests {
  private func second(_ path: BytePath) -> BytePath {
    var name = NumberedName(path)
    let isCounted = name.count()
    #expect(isCounted)
    return name.path
  }

  @Test(
    arguments: [
      ("IMG_1.JPG", "IMG_1-2.JPG"), ("a/b.c/noext", "a/b.c/noext-2"), ("a/.hidden", "a/.hidden-2"),
      ("a.tar.gz", "a.tar-2.gz"), ("a/x.", "a/x-2."),
      ("a/IMG_1.CR2.xmp", "a/IMG_1-2.CR2.xmp"), ("IMG_1.XMP", "IMG_1-2.XMP"),
    ] as [(BytePath, BytePath)])
  func theNumberStandsBeforeTheExtension(_ path: BytePath, _ numbered: BytePath) {
    #expect(NumberedName(path).path == path)
    #expect(second(path) == numbered)
  }

  @Test func theNumberReplacesTheCounter() {
    var name = NumberedName("a/\0/IMG.JPG")
    #expect(name.path == "a/1/IMG.JPG")
    for number in 2...12 {
      let isCounted = name.count()
      #expect(isCounted && name.path == BytePath("a/\(number)/IMG.JPG"))
    }
  }

  @Test(
    arguments: [
      ("a/IMG_1-12.JPG", "IMG_1.JPG", 12), ("IMG_1-2.CR2.xmp", "IMG_1.CR2.xmp", 2), ("IMG_1.JPG", "IMG_1.JPG", 1),
      ("IMG_1-2.JPG", "IMG_1-2.JPG", 1), ("IMG_1-1.JPG", "IMG_1.JPG", 1), ("IMG_1-x.JPG", "IMG_1.JPG", 1),
      ("IMG_1-2.PNG", "IMG_1.JPG", 1), ("IMG_1-99999999999999999999.JPG", "IMG_1.JPG", 1), ("IMG_1-", "IMG_1", 1),
      ("a-3", "a", 3), ("", "", 1),
    ] as [(BytePath, BytePath, Int)])
  func aNumberOfAnEarlierRunIsKnown(_ path: BytePath, _ own: BytePath, _ number: Int) {
    var name = NumberedName(path, of: own)
    #expect(name.path == path && name.number == number)
    let isCounted = name.count()
    #expect(isCounted && name.number == number + 1)
  }

  @Test(
    arguments: [
      ("a/IMG_1.JPG", "a/IMG_1-12.JPG", 12), ("a/IMG_1.JPG", "a/IMG_1.JPG", 1), ("a/IMG_1.JPG", "a/IMG_1-1.JPG", nil),
      ("a/IMG_1.JPG", "b/IMG_1-2.JPG", nil), ("a/IMG_1.JPG", "a/IMG_1-2.PNG", nil), ("a", "a-", nil),
      ("a", "a-+2", nil),
      ("a", "a-99999999999999999999", nil), ("\0/a", "7/a", 7), ("\0/a", "/a", nil), ("a_\0", "a_1", 1), ("", "", 1),
    ] as [(BytePath, BytePath, Int?)])
  func theNumberOfAPathIsFound(_ name: BytePath, _ path: BytePath, _ number: Int?) {
    #expect(NumberedName(name).number(of: path) == number)
  }

  /// The parts of a name that a journal keeps give the name back, and damaged numbers give none.
  @Test(
    arguments: [
      ("a/IMG_1-12.JPG", nil, 12), ("a/\0/IMG.JPG", 2, 31), ("a/\0/IMG.JPG", 2, 1), ("IMG-2.CR2.xmp", nil, 2),
      ("a-3", nil, 3),
      ("\0", 0, 9_999), (BytePath([0xFF, 0x2D, 0x32, 0x2E, 0xFE]), nil, 2),
    ] as [(BytePath, Int?, Int)])
  func aStoredNameIsTheSame(_ path: BytePath, _ counter: Int?, _ number: Int) throws {
    var made = NumberedName(path)
    let isLarge = counter != nil && !made.count(to: number)
    #expect(!isLarge)
    let stored = counter == nil ? path : made.path
    var name = try #require(NumberedName(stored, counter: counter, number: number))
    #expect(name.path == stored && name.number == number && name.counter == counter)
    if counter != nil { #expect(name == made) }
    let isCounted = name.count()
    #expect(isCounted == (number < 9_999))
    for (counter, number) in [(nil, 1), (nil, 7), (-1, 2), (400, 2), (.max, 2), (.min, 2), (0, 0), (0, -1), (0, .max)] {
      #expect(NumberedName(path, counter: counter, number: number) == nil, "\(String(describing: counter))")
    }
  }

  @Test func theNumbersEnd() {
    var (name, count) = (NumberedName("a"), 1)
    while name.count() { count += 1 }
    #expect(count == 9_999 && name.path.bytes.count > 1)
  }

  @Test func bytesThatAreNoTextStay() {
    #expect(second(BytePath([0xFF, 0x2E, 0xFE])) == BytePath([0xFF, 0x2D, 0x32, 0x2E, 0xFE]))
  }
}
