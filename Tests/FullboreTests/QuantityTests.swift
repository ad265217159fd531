import Testing

@testable import fullbore

@Suite struct QuantityTests {
  @Test(
    arguments: [
      ("0", 0), ("512", 512), ("512B", 512), ("8M", 8 << 20), ("8m", nil), ("512KiB", 512 << 10), ("64k", 64 << 10),
      ("1.5G", 3 << 29), ("1G", 1 << 30), ("1T", 1 << 40), ("10MB", 10_000_000), ("10kB", 10_000),
      ("8191P", 8191 << 50),
      ("8192P", nil), ("", nil), ("M", nil), ("1.2.3M", nil), ("1.", nil), (".5M", nil), ("-1", nil), ("+1", nil),
      ("1e3", nil), ("1 M", nil), ("9223372036854775807", .max), ("9223372036854775808", nil),
    ] as [(String, Int64?)])
  func sizesAreReadAsGNUToolsReadThem(_ text: String, _ bytes: Int64?) {
    #expect(Quantity.size(text) == bytes)
  }

  @Test func aRateMayEndInPerSecondAndIsNeverZero() {
    #expect(Quantity.rate("20M") == 20 << 20)
    #expect(Quantity.rate("20M/s") == 20 << 20)
    #expect(Quantity.rate("50MB/s") == 50_000_000)
    #expect(Quantity.rate("20Mbit") == 2_500_000 && Quantity.rate("20Mbit/s") == 2_500_000)
    #expect(Quantity.rate("1.5Gbit") == 187_500_000 && Quantity.rate("8bit") == 1)
    for text in ["0", "7bit", "bit", "20Mbits", "-1M"] { #expect(Quantity.rate(text) == nil, "\(text)") }
  }

  @Test(
    arguments: [
      ("30s", 30_000), ("5m", 300_000), ("5min", 300_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("250ms", 250),
      ("1.5s", 1500), ("90", 90_000), ("0", 0), ("", nil), ("s", nil), ("5x", nil), ("1h30", nil), ("-5s", nil),
    ] as [(String, Int?)])
  func durationsAreSumsOfParts(_ text: String, _ milliseconds: Int?) {
    #expect(Quantity.duration(text) == milliseconds.map { .milliseconds($0) })
  }

  @Test func sizesAreWrittenWithThreeDigits() {
    #expect(Quantity.text(bytes: 0) == "0 B")
    #expect(Quantity.text(bytes: 1023) == "1023 B")
    #expect(Quantity.text(bytes: 1024) == "1.00 KiB")
    #expect(Quantity.text(bytes: 14_365_491) == "13.7 MiB")
    #expect(Quantity.text(bytes: 1 << 30) == "1.00 GiB")
    #expect(Quantity.text(bytes: (1 << 30) - 1) == "1.00 GiB")
    #expect(Quantity.text(bytes: .max) == "8.00 EiB")
  }

  @Test func timesAreWrittenAsAClockHasThem() {
    #expect(Quantity.text(.milliseconds(420)) == "0.42 s")
    #expect(Quantity.text(.seconds(59.96)) == "1:00")
    #expect(Quantity.text(.seconds(205)) == "3:25")
    #expect(Quantity.text(.seconds(3753)) == "1:02:33")
    #expect(Quantity.grouped(1_234_567) == "1,234,567")
    #expect(Quantity.plural(1, "file") == "1 file")
  }
}
