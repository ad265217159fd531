import BlobHTTP
import Testing

@Suite struct HTTPDateTests {
  @Test(arguments: [
    "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
  ])
  func theThreeFormsOfADate(_ text: String) { #expect(HTTPDate.seconds(text) == 784_111_777) }

  @Test(
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),
    ] as [(String, Int64)])
  func datesAtTheEdges(_ text: String, _ seconds: Int64) { #expect(HTTPDate.seconds(text) == seconds) }

  @Test(arguments: [
    "", "now", "1994", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 31 Feb 2001 00:00:00 GMT",
    "Wed, 31 Dec 1969 23:59:59 GMT", "Sun, 06 Nov 10000 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
    "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Abc 1994 08:49:37 GMT", "Son, 06 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
  ])
  func textThatIsNoDateIsNil(_ text: String) { #expect(HTTPDate.seconds(text) == nil) }

  @Test func everyDayIsReadAsItIsWritten() {
    for day in stride(from: Int64(0), to: 2_932_896, by: 37) {
      let seconds = day * 86_400 + day % 86_400
      #expect(HTTPDate.text(seconds: seconds).flatMap { HTTPDate.seconds($0) } == seconds)
    }
  }
}
