import BlobHTTP
import BlobTesting
import Blobs
import Testing

/// A form is a source, and can be streamed as one.
@Suite struct FormSourceTests {
  @Test(arguments: SourceFixture.forms, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  @Test(arguments: SourceFixture.forms.filter { $0.length < 1 << 20 }, StreamCheck.all)
  func streams(_ fixture: SourceFixture, _ check: StreamCheck) async throws { try await check.run(fixture) }
}

extension SourceFixture {
  fileprivate static let forms =
    [
      form("no parts", [], "--B--\r\n"),
      form(
        "an empty file", [FormPart(DataSource([]), name: Array("f".utf8), fileName: Array("e".utf8))],
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"e\"\r\n\r\n\r\n--B--\r\n"),
      // The contents look like the form's own bytes.
      form(
        "contents that end a line",
        ["\r", "\n", "\r\n", "\r\n--", "\r\n--C--\r\n"].map { FormPart(DataSource($0), name: [0x66]) },
        ["\r", "\n", "\r\n", "\r\n--", "\r\n--C--\r\n"].map(simple).joined() + "--B--\r\n"),
    ] + [1, 5000, 300_000].flatMap { length in [film(length), film(length, knowsLength: false)] }
    + [beyondFourGiB] + lenders

  private static func simple(_ content: String) -> String {
    "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n\(content)\r\n"
  }

  private static func form(_ name: String, _ parts: [FormPart], _ expected: String) -> SourceFixture {
    SourceFixture("a form of \(name)", like: Array(expected.utf8)) {
      var form = MultipartForm(boundary: "B")
      for part in parts { form.append(part) }
      return form
    }
  }

  private static let before =
    simple("Trip") + "--B\r\nContent-Disposition: form-data; name=\"film\"; filename=\"a.mov\"\r\n"
    + "Content-Type: video/quicktime\r\n\r\n"
  private static let after = "\r\n--B--\r\n"

  private static func film(_ source: any BlobSource) -> MultipartForm {
    var form = MultipartForm(boundary: "B")
    form.appendField("Trip", name: "f")
    form.appendPart(source, name: "film", fileName: "a.mov", mimeType: "video/quicktime")
    return form
  }

  private static func film(_ length: Int64, knowsLength: Bool = true) -> SourceFixture {
    let pattern = PatternSource(length: length, seed: 1, knowsLength: knowsLength, preferredRead: 4096)
    let expected = Array(before.utf8) + pattern.bytes(count: Int(length)) + Array(after.utf8)
    return SourceFixture(
      "a form with a film of \(length)\(knowsLength ? "" : ", length unknown")", like: expected,
      knowsLength: knowsLength, stalled: { film(FaultySource(PatternSource(length: 10), .stall(at: 5))) }
    ) { film(pattern) }
  }

  #if os(Linux)
    private static let lenders: [SourceFixture] = {
      let pattern = PatternSource(length: 300_000, seed: 3)
      let expected = Array(before.utf8) + pattern.bytes(count: 300_000) + Array(after.utf8)
      return [
        SourceFixture("a form with a film in a file", like: expected, lendsFile: true) {
          film(Lender(try TemporaryFile(pattern), Tally()))
        }
      ]
    }()
  #else
    private static let lenders: [SourceFixture] = []
  #endif

  private static let beyondFourGiB: SourceFixture = {
    let pattern = PatternSource(length: 5 << 30, seed: 2)
    var fixture = SourceFixture("a form beyond 4 GiB", like: pattern) { film(pattern) }
    let (head, tail) = (Array(before.utf8), Array(after.utf8))
    fixture.length += Int64(head.count + tail.count)
    fixture.expected = { offset, count in
      (offset..<offset + Int64(count)).map { byte in
        let place = byte - Int64(head.count)
        if place < 0 { return head[Int(byte)] }
        return place < pattern.length ? pattern.byte(at: place) : tail[Int(place - pattern.length)]
      }
    }
    return fixture
  }()
}
