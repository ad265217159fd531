import BlobHTTP
import Testing

@testable import BlobServer

struct DateTests {
  @Test(
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
      (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
      (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (253_402_300_800, nil), (-62_167_219_201, nil), (.max, nil),
      (.min, nil),
    ] as [(Int64, String?)])
  func everyTimeHasADateOrNone(_ seconds: Int64, _ text: String?) {
    #expect(HTTPDate.text(seconds: seconds) == text)
  }

  @Test(
    arguments: [
      (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (-1_000_000_000, "Wed, 31 Dec 1969 23:59:59 GMT"),
      (999_999_999, "Thu, 01 Jan 1970 00:00:00 GMT"), (.max, "Fri, 11 Apr 2262 23:47:16 GMT"),
      (.min, "Tue, 21 Sep 1677 00:12:43 GMT"),
    ] as [(Int64, String)])
  func nanosecondsAreRoundedDown(_ nanoseconds: Int64, _ text: String) {
    #expect(HTTPDate.text(nanoseconds) == text)
  }

  @Test(arguments: ["0", "-0.000000001", "-1", "1.000000009", "-62135596800.5", "253402300799.999999999", "-1.5"])
  func aModificationTimeIsReadAsItIsWritten(_ text: String) {
    let time = ModificationTime(text.utf8)
    #expect(time == time.flatMap { ModificationTime($0.text.utf8) })
    #expect((time == nil) == (text == "-62135596800.5"))
  }

  @Test(arguments: ["", "-", "253402300800", "-62135596801", String(repeating: "9", count: 100_000), "1.0000000000"])
  func textThatIsNoModificationTimeIsNil(_ text: String) {
    #expect(ModificationTime(text.utf8) == nil)
  }
}
