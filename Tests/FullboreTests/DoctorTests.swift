import BlobClient
import BlobHTTP
import Blobs
import Testing

@testable import fullbore

@Suite struct DoctorTests {
  /// What is no URL of a server is answered with what the doctor takes.
  @Test(arguments: ["g", "g/x", "http:/nas/", "s3://bucket", "gs://bucket/in"])
  func onlyURLsOfServersAreExamined(_ given: String) {
    let message = usageError { () throws(UsageError) in
      _ = try DoctorCommand(Arguments([BytePath(given)], DoctorCommand.declaration))
    }
    #expect(message == "'\(given)': wanted an http:// or https:// URL of a server, or a place, like nas:")
  }

  /// The search ends with the exact limit, whatever it is, and needs few requests for usual ones.
  @Test(
    arguments: [
      (1 << 20, 20), (10_485_760, 20), (8 << 30, 20), (1, 60), (1_536_000, 40), (100 << 20, 20), (99_999_999_999, 60),
    ] as [(Int64, Int)])
  func sizesAreFoundToTheByte(_ limit: Int64, atMost requests: Int) {
    var search = SizeSearch(refused: 100 << 30)
    var count = 0
    while let size = search.next(), count < 100 {
      count += 1
      #expect(size > search.limit.passes && size < search.limit.refused)
      if size > limit { search.limit.refused = size } else { search.limit.passes = size }
    }
    #expect(search.limit == .init(passes: limit, refused: limit + 1))
    #expect(count <= requests, "\(limit): \(count) requests")
  }

  /// Everything is refused, even one byte.
  @Test func aSearchWithoutASizeThatPassesEnds() {
    var (search, count) = (SizeSearch(refused: .max), 0)
    while let size = search.next(), count < 100 {
      count += 1
      search.limit.refused = size
    }
    #expect(search.limit == .init(passes: 0, refused: 1))
  }

  @Test(
    arguments: [
      (["Server": "nginx/1.22.1"], "", .nginx), (["Server": "openresty"], "", .nginx),
      (["Via": "1.1 Caddy"], "", .caddy), (["Server": "Apache/2.4.71 (Debian)"], "", .apache),
      (["Via": "1.1 haproxy", "Server": "nginx"], "", .haproxy), ([:], "<hr><center>nginx</center>", .nginx),
      ([:], "<html><body><h1>403 Forbidden</h1>\nRequest forbidden", .haproxy), ([:], "no", nil),
    ] as [(HTTPHeaders, String, ServerProgram?)])
  func programsAreRecognized(_ headers: HTTPHeaders, _ body: String, _ program: ServerProgram?) {
    let response = HTTPResponse(head: HTTPHead(status: 403, headers: headers), body: Array(body.utf8))
    #expect(ServerProgram(of: response) == program)
  }

  @Test(arguments: [
    ("/in/up/1", []), ("up/1", []), ("https://nas.example/in/up/1", []),
    ("http://nas.example/in/up/1", ["the scheme is http instead of https"]),
    (
      "https://10.0.0.7:8080/in/up/1",
      ["the host is 10.0.0.7 instead of nas.example", "the port is 8080 instead of 443"]
    ),
    ("http://nas.example:1080/1", ["the scheme is http instead of https", "the port is 1080 instead of 443"]),
    ("http://[", ["it is no URL"]),
  ])
  func locationsAreCompared(_ told: String, _ differences: [String]) throws {
    let endpoint = try #require(HTTPURL("https://nas.example/in/"))
    #expect(UploadLocation(told, of: endpoint, at: endpoint).differences == differences)
  }

  @Test func aLostPrefixIsNamed() throws {
    let endpoint = try #require(HTTPURL("https://nas.example/in/"))
    #expect(UploadLocation("/up/1", of: endpoint, at: endpoint).lostPrefix == "/in/")
    #expect(UploadLocation("/in/up/1", of: endpoint, at: endpoint).lostPrefix == nil)
    let root = try #require(HTTPURL("https://nas.example/"))
    #expect(UploadLocation("/up/1", of: root, at: root).lostPrefix == nil)
  }

  /// One finding for each kind of problem, although OpenSSL reports several codes for most.
  @Test(
    arguments: [
      ([(18, 0)], true, 1, 90, [.tlsSelfSigned]), ([(20, 0), (21, 0)], false, 1, 90, [.tlsChain]),
      ([(20, 1)], false, 2, 90, [.tlsAuthority]), ([(19, 1)], false, 2, 90, [.tlsAuthority]),
      ([(10, 0)], false, 2, -3, [.tlsExpired]), ([(10, 0), (62, 0)], false, 2, -3, [.tlsExpired, .tlsName]),
      ([(62, 0)], false, 2, 90, [.tlsName]), ([(64, 0)], false, 2, 90, [.tlsName]), ([], false, 2, 90, []),
      ([], false, 2, 5, [.tlsExpiresSoon]), ([(9, 0)], false, 2, 90, [.tlsNotYetValid]),
      ([(18, 0), (62, 0)], true, 1, 5, [.tlsSelfSigned, .tlsExpiresSoon, .tlsName]),
      ([(23, 0)], false, 2, 90, [.tlsOther]),
      ([(23, 0)], false, 2, 5, [.tlsExpiresSoon, .tlsOther]),
    ] as [([(Int, Int)], Bool, Int, Int64, [Finding.Kind])])
  func problemsOfCertificatesAreDistinguished(
    _ problems: [(Int, Int)], _ isSelfSigned: Bool, _ sent: Int, _ days: Int64, _ kinds: [Finding.Kind]
  ) async throws {
    let report = CertificateReport(
      problems: problems.map { .init(code: $0.0, depth: $0.1) }, subject: "nas", issuer: "R11",
      isSelfSigned: isSelfSigned, sentCount: sent, secondsLeft: days * 86_400)
    let target = try await DoctorTarget(
      Destination("https://nas.example/"), ConnectionOptions(), DoctorReport(isJSON: true))
    #expect(CertificateCheck(target: target).findings(report).map(\.kind) == kinds)
  }

  /// Lines are for one program, where it is known; each finding has a consequence.
  @Test func printedLinesBelongToAProgram() {
    let lists = [
      Mend.bodyLimit, Mend.buffering, Mend.bodyTimeout, Mend.method("PATCH"), Mend.method("MOVE"), Mend.keepAlive,
      Mend.location(prefix: nil), Mend.location(prefix: "/in/"), Mend.interim, Mend.backend,
      Mend.crossOrigin(isTwice: true), Mend.crossOrigin(isTwice: false),
    ]
    for list in lists {
      #expect(Set(list.compactMap(\.program)) == Set(ServerProgram.allCases))
      #expect(list.allSatisfy { !$0.lines.isEmpty && ($0.isAdvice || !$0.place.isEmpty) })
    }
  }

  @Test(arguments: [
    ["doctor"], ["doctor", "http://a/", "http://b/"], ["doctor", "s3://bucket/"], ["doctor", "gs://bucket/"],
    ["doctor", "--pause", "0s", "http://a/"], ["doctor", "--largest", "x", "http://a/"],
    ["doctor", "--origin", "a.example", "http://a/"], ["doctor", "--origin", "https://a.example/page", "http://a/"],
  ])
  func wrongArgumentsAreRefused(_ arguments: [String]) throws {
    let rest = arguments.dropFirst().map { BytePath($0) }
    #expect(throws: UsageError.self) {
      try DoctorCommand(Arguments(Array(rest), DoctorCommand.declaration))
    }
  }
}
