import BlobHTTP
import BlobTesting
import Testing

struct MultipartParserTests {
  /// A part as it was parsed; `whole`: its end was found.
  struct Part: Equatable {
    var head: MultipartHead
    var bytes: [UInt8] = []
    var isWhole = false
  }

  /// Parses a body that arrives in pieces of these sizes; the last size is repeated.
  static func parse(_ body: [UInt8], boundary: String = "B", pieces: [Int] = [.max]) throws -> [Part] {
    let parser = MultipartParser(boundary: Array(boundary.utf8))
    var parts: [Part] = []
    var rest = body[...]
    var sizes = pieces[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(sizes.count > 1 ? sizes.removeFirst() : sizes.first!))
      rest = rest.dropFirst(piece.count)
      try piece.withUnsafeBytes { buffer in
        var bytes = buffer
        while let event = try parser.next(&bytes) {
          switch event {
          case .part(let head): parts.append(Part(head: head))
          case .bytes(let bytes):
            #expect(!bytes.isEmpty)
            parts[parts.count - 1].bytes += bytes
          case .end: parts[parts.count - 1].isWhole = true
          }
        }
        #expect(bytes.isEmpty)
      }
    }
    try parser.finish()
    return parts
  }

  static func head(_ name: String, file: String? = nil) -> String {
    let file = file.map { "; filename=\"\($0)\"" } ?? ""
    return "Content-Disposition: form-data; name=\"\(name)\"\(file)\r\n\r\n"
  }

  static func form(_ parts: (head: String, bytes: [UInt8])..., boundary: String = "B") -> [UInt8] {
    parts.flatMap { Array("--\(boundary)\r\n\($0.head)".utf8) + $0.bytes + [13, 10] }
      + Array("--\(boundary)--\r\n".utf8)
  }

  /// Contents that look like the boundary.
  static let contents: [[UInt8]] = [
    [], [13], [10], [13, 10], [13, 13], [13, 10, 13, 10], Array("\r\n--".utf8), Array("\r\n-".utf8),
    Array("\r\r\n--".utf8), Array("--B".utf8), Array("--B--\r\n".utf8), Array("\n--B\r\n".utf8),
    Array("x\r\n--A\r\n".utf8),
    Array("\r\n--\r\n--\r\n".utf8), Array(repeating: 13, count: 100), [0, 255, 13, 0],
  ]

  @Test func partsComeBackWhole() throws {
    for first in Self.contents {
      for second in Self.contents {
        let body = Self.form((Self.head("a"), first), (Self.head("f", file: "x"), second))
        let parts = try Self.parse(body)
        #expect(parts.map(\.bytes) == [first, second])
        #expect(parts.allSatisfy { $0.isWhole })
        #expect(parts.map(\.head.name) == [Array("a".utf8), Array("f".utf8)])
        #expect(parts.map(\.head.fileName) == [nil, Array("x".utf8)])
      }
    }
  }

  @Test func everySplitGivesTheSame() throws {
    let body =
      Array("preamble\r\n".utf8)
      + Self.form((Self.head("a"), [13, 10, 45]), (Self.head("f", file: "x"), Self.contents[7]))
      + Array("epilogue".utf8)
    let whole = try Self.parse(body)
    #expect(whole.count == 2)
    for first in 1..<body.count {
      #expect(try Self.parse(body, pieces: [first, .max]) == whole, "\(first)")
      #expect(try Self.parse(body, pieces: [first]) == whole, "\(first)")
      #expect(try Self.parse(body, pieces: [first, 1, .max]) == whole, "\(first)")
    }
  }

  @Test func randomSplitsOfRandomFormsGiveTheSame() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    for _ in 0..<300 {
      var parts: [[UInt8]] = []
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        parts.append(
          (0..<Int.random(in: 0...6, using: &random)).flatMap { _ in Self.contents.randomElement(using: &random)! })
      }
      let body =
        parts.flatMap { Array("--BQ\r\n\(Self.head("f", file: "x"))".utf8) + $0 + [13, 10] } + Array("--BQ--".utf8)
      let pieces = (0..<20).map { _ in Int.random(in: 1...40, using: &random) }
      #expect(try Self.parse(body, boundary: "BQ", pieces: pieces).map(\.bytes) == parts, "seed \(seed)")
    }
  }

  @Test func anEmptyFormHasNoParts() throws {
    #expect(try Self.parse(Array("--B--".utf8)).isEmpty)
    #expect(try Self.parse(Array("--B--\r\nwhatever\r\n--B\r\nno part".utf8)).isEmpty)
  }

  @Test func blanksMayFollowABoundary() throws {
    let body = "--B \t\r\n\(Self.head("a"))x\r\n--B  \r\n\(Self.head("b"))y\r\n--B--"
    #expect(try Self.parse(Array(body.utf8)).map(\.bytes) == [Array("x".utf8), Array("y".utf8)])
  }

  // Malformed bodies.

  @Test(arguments: [
    "", "x", "--", "--B", "--B-", "--B\r\n", "--B\r\n\r\n", "--A--", "\r\n--A--\r\n", "-B--",
    "--B\n\(head("a"))x\r\n--B--", "--B\r\n\(head("a"))x", "--B\r\n\(head("a"))x\r\n", "--B\r\n\(head("a"))x\r\n--B",
    "--B\r\n\(head("a"))x\r\n--B-", "--B\r\n\(head("a"))x\r\n--BB--", "--B\r\n\(head("a"))x\r\n--B \n",
    "--B\r\n\(head("a"))x\n--B--", "--BB\r\n\(head("a"))x\r\n--BB--",
    "--B\r\nContent-Disposition: form-data; name=\"a\"\n\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name=\"a\"\r\r\n\r\nx\r\n--B--",
    "--B\r\n\r\nx\r\n--B--", "--B\r\nContent-Type: text/plain\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; filename=\"a\"\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name=\"a\" b\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name=\"a\"; name=\"b\"\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\nx\r\n--B--",
    "--B\r\nContent-Disposition: form-data;\r\n name=\"a\"\r\n\r\nx\r\n--B--",
    "--B\r\nno field\r\n\(head("a"))x\r\n--B--", "--B\r\n: x\r\n\(head("a"))x\r\n--B--",
    "--B\r\na b: x\r\n\(head("a"))x\r\n--B--",
    "--B\r\nContent-Transfer-Encoding: base64\r\n\(head("a"))x\r\n--B--",
  ]) func aMalformedFormIsRefused(_ body: String) {
    for pieces in [[Int.max], [1], [3]] {
      #expect(throws: MultipartError.self) { try Self.parse(Array(body.utf8), pieces: pieces) }
    }
  }

  /// A receiver that stores a part when it ends must not store one whose end is ambiguous.
  @Test(arguments: ["--Bx", "--B-x", "--B\rx", "--B\n", "--B \n", "--B", "--B-", "--B\r"])
  func aPartEndsWithTheWholeLineAfterIt(_ line: String) throws {
    for piece in [Int.max, 1] {
      let parser = MultipartParser(boundary: Array("B".utf8))
      var ends = 0
      var rest = Array("--B\r\n\(Self.head("a"))x\r\n--B\r\n\(Self.head("b"))y\r\n\(line)".utf8)[...]
      #expect(throws: MultipartError.self) {
        while !rest.isEmpty {
          let next = Array(rest.prefix(piece))
          rest = rest.dropFirst(next.count)
          try next.withUnsafeBytes { buffer in
            var bytes = buffer
            while let event = try parser.next(&bytes) { if case .end = event { ends += 1 } }
          }
        }
        try parser.finish()
      }
      #expect(ends == 1)
    }
  }

  @Test func headsPartsAndPreamblesAreBounded() {
    let limits = MultipartParser.Limits()
    let long = "X: \(String(repeating: "x", count: limits.head))\r\n"
    let many = Array(repeating: "--B\r\n\(Self.head("a"))\r\n", count: limits.parts + 1).joined()
    let late = String(repeating: "\r\n--A", count: limits.preamble / 5 + 2)
    for (body, status) in [
      ("--B\r\n\(long)\(Self.head("a"))x\r\n--B--", 431), (many + "--B--", 413), ("\(late)\r\n--B--", 400),
    ] {
      do {
        _ = try Self.parse(Array(body.utf8), pieces: [4096])
        Issue.record("a form of \(body.utf8.count) bytes was taken")
      } catch {
        #expect((error as? MultipartError)?.status == status)
      }
    }
  }

  // Heads.

  @Test(arguments: [
    (#"filename="a.jpg""#, "a.jpg"), (#"filename=a.jpg"#, "a.jpg"), (#"filename="""#, ""),
    (#"filename="C:\fakepath\a b.jpg""#, #"C:\fakepath\a b.jpg"#), (#"filename="/etc/passwd""#, "passwd"),
    (#"filename="../x""#, "x"), (#"filename="a\x.jpg""#, #"a\x.jpg"#), (#"filename="a\\x.jpg""#, #"a\\x.jpg"#),
    (#"filename="q%22uo\te""#, #"q"uo\te"#), (#"filename="end\""#, #"end\"#), (#"filename="end\"; x=y"#, #"end\"#),
    (#"filename="end\\" "#, #"end\\"#), (#"filename="\""#, #"\"#), (#"filename="\"a\"""#, #""a""#),
    (#"filename="a%22b%0D%0Ac.jpg""#, "a\"b\r\nc.jpg"), (#"filename="100%25 %2F%00.jpg""#, "100%25 %2F%00.jpg"),
    (#"filename="a\"b.jpg""#, "a\"b.jpg"), (#"filename="Ünïcødé 😀.jpg""#, "Ünïcødé 😀.jpg"),
    (#"filename="x"; filename*=UTF-8''%C3%9C%20b.jpg"#, "Ü b.jpg"), (#"filename*=utf-8''..%2Fa.jpg"#, "a.jpg"),
    (#"filename="x"; filename*=UTF-8''%+1"#, "x"), (#"filename="x"; filename*=latin-1''%FC"#, "x"),
    (#"FILENAME="a;b=c.jpg""#, "a;b=c.jpg"), (#"filename="..""#, ".."), (#"filename="a/""#, ""),
  ]) func fileNamesAreReadAsTheyAreSent(_ parameter: String, _ name: String) throws {
    let head = "content-disposition:form-data; name=\"f\" ; \(parameter)\r\nContent-Type:  image/jpeg \r\n\r\n"
    let parts = try Self.parse(Self.form((head, [1])))
    #expect(parts[0].head.fileName.map { String(decoding: $0, as: UTF8.self) } == name)
    #expect(parts[0].head.contentType == "image/jpeg")
  }

  @Test(arguments: [
    ("multipart/form-data; boundary=B", "B"), ("Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b:c\"", "a b:c"),
    ("text/plain; boundary=B", nil), ("multipart/mixed; boundary=B", nil), (nil, nil),
  ]) func boundariesAreFound(_ type: String?, _ boundary: String?) throws {
    #expect(try MultipartBoundary.find(type) == boundary.map { Array($0.utf8) })
  }

  @Test(arguments: [
    "", "; boundary", "; boundary=", "; boundary=\"\"", "; boundary=ä", "; boundary=a\"b",
    "; boundary=\"a\\\r\nb\"", "; boundary=\(String(repeating: "a", count: 71))", "; boundary=a@b",
  ]) func otherBoundariesAreRefused(_ parameters: String) {
    #expect(throws: MultipartError.self) { try MultipartBoundary.find("multipart/form-data\(parameters)") }
  }

  // A short run of what the fuzzer does: no input may crash the parser, and the result must not depend on the pieces.

  @Test func mutatedFormsAreReadAlikeHoweverTheyAreSplit() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    let words = [
      "\r\n", "--B", "--B--", "\r", "\n", "-", ";", "\"", "=", "%", ":", "name", "filename*", "\\", " ", "\0",
    ]
    for _ in 0..<3000 {
      var body = Self.form(
        (Self.head("a"), Self.contents.randomElement(using: &random)!),
        (Self.head("f", file: "x%22.jpg"), Self.contents.randomElement(using: &random)!))
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<body.count, using: &random)
        let end = min(body.count, place + Int.random(in: 0...3, using: &random))
        body.replaceSubrange(place..<end, with: Array(words.randomElement(using: &random)!.utf8))
        if body.isEmpty { body = [13] }
      }
      let whole = Result { try Self.parse(body) }
      let split = Result { try Self.parse(body, pieces: [Int.random(in: 1...9, using: &random)]) }
      switch (whole, split) {
      case (.success(let whole), .success(let split)): #expect(whole == split, "seed \(seed): \(body)")
      case (.failure(let whole), .failure(let split)): #expect("\(whole)" == "\(split)", "seed \(seed): \(body)")
      default: Issue.record("seed \(seed): \(whole) is not \(split) for \(body)")
      }
    }
  }
}
