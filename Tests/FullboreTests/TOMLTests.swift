import Testing

@testable import fullbore

/// The reader of `config.toml`, for the part of TOML 1.0 that it has.
@Suite struct TOMLTests {
  private func table(_ text: String) throws -> TOMLDocument.Table {
    try #require(try TOMLDocument(text).tables.last)
  }

  private func value(_ text: String) throws -> TOMLDocument.Value? {
    try table("key = \(text)\n").entries.first?.value
  }

  /// The line and the column of the error; nil: there is none.
  private func mistake(_ text: String) -> String? {
    do throws(TOMLError) {
      _ = try TOMLDocument(text)
      return nil
    } catch {
      return "\(error.position.line):\(error.position.column)"
    }
  }

  @Test func tablesHaveTheirNamesAndLines() throws {
    let tables = try TOMLDocument(
      """
      # A comment.
      [places.nas]   # and one more
      url = "http://nas/"

      [ places . "cloud" ]\r
      jobs = [
        1,  # the first
        2,
      ]
      """
    ).tables
    #expect(tables.map(\.name) == [[], ["places", "nas"], ["places", "cloud"]])
    #expect(tables.map(\.position.line) == [1, 2, 5] && tables.map(\.lastLine) == [1, 3, 9])
    #expect(tables[2].entries[0].value == .array([.integer(1), .integer(2)]))
    #expect(tables[1].entries[0].valuePosition == .init(line: 3, column: 7))
  }

  @Test(arguments: [
    ("\"a # b\"", "a # b"), ("'C:\\new \"x\"'", "C:\\new \"x\""), ("\"\\t\\\"\\\\\\u00e9\\U0001F4F7\"", "\t\"\\é📷"),
    ("\"\"", ""), ("''", ""), ("\"é\"", "é"),
  ])
  func textIsReadWithItsEscapes(_ text: String, _ meaning: String) throws {
    #expect(try value(text) == .string(meaning))
  }

  @Test func numbersAndTruthsAreRead() throws {
    #expect(try value("-1_000") == .integer(-1000) && value("+7") == .integer(7) && value("0") == .integer(0))
    #expect(try value("true # yes") == .boolean(true) && value("false") == .boolean(false))
    #expect(try value("[]") == .array([]) && value("['a', \"b\"]") == .array([.string("a"), .string("b")]))
    #expect(try TOMLDocument("\u{FEFF}a = 1").tables[0].entries[0].keyPosition == .init(line: 1, column: 1))
  }

  @Test(arguments: [
    ("a = \"x", "1:5"), ("a = 'x\nb = 1", "1:5"), ("a = \"\\q\"", "1:6"), ("a = \"\\ud800\"", "1:6"),
    ("a = \"\"\"x\"\"\"", "1:5"), ("a = word", "1:5"), ("a = 1.5", "1:5"), ("a = 012", "1:5"), ("a = 1__0", "1:5"),
    ("a = 99999999999999999999", "1:5"), ("a = 2026-01-01", "1:5"), ("a = { b = 1 }", "1:5"), ("a = [1", "1:7"),
    ("a = [[1]]", "1:6"), ("a = [1 2]", "1:8"), ("a =", "1:4"), ("a", "1:2"), ("a = 1 b = 2", "1:7"),
    ("a.b = 1", "1:2"), ("= 1", "1:1"), ("é = 1", "1:1"), ("[places", "1:8"), ("[[places]]", "1:2"), ("[]", "1:2"),
    ("[a] b", "1:5"), ("a = 1\na = 2", "2:1"), ("[a]\n[b]\n[a]", "3:1"), ("a = \"é\u{1}\"", "1:7"),
    ("# \u{1}", "1:3"), ("a = 1\rb = 2", "1:6"), ("\n\n  x", "3:4"), ("a = \"\\", "1:6"), ("a = \"\\u12", "1:6"),
  ])
  func theErrorOfATOMLTextHasItsLineAndColumn(_ text: String, _ place: String) { #expect(mistake(text) == place) }

  /// The text may be a secret that was written without quotes.
  @Test func noMessageRepeatsAValue() {
    for text in ["a = hunter2", "a = \"hunter2", "a = [hunter2]", "a = \"x\" hunter2", "a = {hunter2"] {
      do throws(TOMLError) {
        _ = try TOMLDocument(text)
        Issue.record("\(text) was read")
      } catch {
        #expect(!error.message.contains("hunter2"), "\(error.message)")
      }
    }
  }

  /// Any bytes are either read or refused.
  @Test func noTextIsAProblem() {
    let letters = Array("[]\"'\\=#,.{}\n\r\t ab1+-_tu\u{0}\u{1}é")
    var random = SystemRandomNumberGenerator()
    for _ in 0..<20_000 {
      let text = String(
        (0..<Int.random(in: 0...24, using: &random)).map { _ in letters.randomElement(using: &random)! })
      _ = try? TOMLDocument(text)
    }
  }
}
