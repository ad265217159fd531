import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobServer

/// A browser that makes the name of the address and the type itself saves a `.JPG` as `.jpeg`.
@Test func aDownloadKeepsItsName() throws {
  let server = try TestServer()
  server.folder.write("IMG \"1\" ä.JPG", [1])
  let answer = try server.ask("GET", "/IMG%20%221%22%20%C3%A4.JPG?download")
  #expect(
    answer["Content-Disposition"]
      == "attachment; filename=\"IMG _1_ __.JPG\"; filename*=UTF-8''IMG%20%221%22%20%C3%A4.JPG")
  #expect(try server.ask("GET", "/IMG%20%221%22%20%C3%A4.JPG")["Content-Disposition"] == nil)
}

struct GetTests {
  @Test func aFileIsServedAsWhatItIs() throws {
    let server = try TestServer()
    let bytes = pattern(3_000_000)
    server.folder.write("p.JPG", bytes)
    server.folder.write("page.html", [1])
    let answer = try server.ask("GET", "/p.JPG")
    #expect(answer.status == 200)
    #expect(answer.body == bytes)
    #expect(answer["Content-Type"] == "image/jpeg")
    #expect(answer["X-Content-Type-Options"] == "nosniff")
    #expect(answer["Content-Security-Policy"] == "sandbox")
    #expect(answer["Content-Disposition"] == nil)
    #expect(answer["Accept-Ranges"] == "bytes")
    #expect(answer["Last-Modified"]?.hasSuffix(" GMT") == true)
    let page = try server.ask("GET", "/page.html?x=1")
    #expect(page["Content-Type"] == "application/octet-stream")
    #expect(page["Content-Disposition"] == "attachment; filename=\"page.html\"; filename*=UTF-8''page.html")
  }

  #if os(Linux)
    @Test(arguments: [("127.0.0.1", true), ("0.0.0.0", false)])
    func onlyAServerForThisMachineSetsThePaceAside(_ address: String, _ isForThisMachine: Bool) throws {
      let server = try TestServer {
        $0.address = address
        $0.token = isForThisMachine ? nil : "t"
      }
      let client = try server.client()
      _ = try client.ask("GET", "/")
      let accepted = OpenSocket.all.filter { $0.port == Int(server.server.port) }.map(\.congestionControl)
      #expect(accepted == [isForThisMachine ? "reno" : OpenSocket.usualCongestionControl])
    }
  #endif

  @Test func headHasTheFieldsOfGetWithoutABody() throws {
    let server = try TestServer()
    server.folder.write("a.mov", pattern(1000))
    let client = try server.client()
    let answer = try client.ask("HEAD", "/a.mov", [("Range", "bytes=0-9")])
    #expect(answer.status == 200)
    #expect(answer["Content-Length"] == "1000")
    #expect(answer["Content-Type"] == "video/quicktime")
    #expect(try client.ask("GET", "/a.mov").body.count == 1000)
  }

  @Test(
    arguments: [
      ("bytes=0-0", 0..<1), ("bytes=10-19", 10..<20), ("bytes=990-5000", 990..<1000), ("bytes=995-", 995..<1000),
      ("bytes=-5", 995..<1000), ("bytes=-5000", 0..<1000), ("bytes=5-99999999999999999999", 5..<1000),
    ])
  func aRangeIsAPartOfIt(_ field: String, _ range: Range<Int>) throws {
    let server = try TestServer()
    let bytes = pattern(1000)
    server.folder.write("a", bytes)
    let answer = try server.ask("GET", "/a", [("Range", field)])
    #expect(answer.status == 206)
    #expect(answer.body == Array(bytes[range]))
    #expect(answer["Content-Range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/1000")
  }

  @Test(arguments: ["bytes=0-1,5-6", "bytes=5-4", "lines=0-1", "bytes=a-b", "bytes=-", "bytes"])
  func anInvalidRangeIsAnsweredWithTheWholeFile(_ field: String) throws {
    let server = try TestServer()
    server.folder.write("a", pattern(1000))
    let answer = try server.ask("GET", "/a", [("Range", field)])
    #expect(answer.status == 200)
    #expect(answer.body.count == 1000)
  }

  @Test(arguments: ["bytes=1000-", "bytes=5000-6000", "bytes=-0"])
  func aRangePastTheEndIsRefused(_ field: String) throws {
    let server = try TestServer()
    server.folder.write("a", pattern(1000))
    let answer = try server.ask("GET", "/a", [("Range", field)])
    #expect(answer.status == 416)
    #expect(answer["Content-Range"] == "bytes */1000")
  }

  @Test func ifRangeWantsTheSameVersion() throws {
    let server = try TestServer()
    server.folder.write("a", pattern(1000))
    let head = try server.ask("HEAD", "/a")
    let range = ("Range", "bytes=0-9")
    #expect(try server.ask("GET", "/a", [range, ("If-Range", head["ETag"]!)]).status == 206)
    #expect(try server.ask("GET", "/a", [range, ("If-Range", head["Last-Modified"]!)]).status == 206)
    #expect(try server.ask("GET", "/a", [range, ("If-Range", "\"other\"")]).status == 200)
    #expect(try server.ask("GET", "/a", [("If-None-Match", head["ETag"]!)]).status == 304)
  }

  @Test func farRangesOfAHugeFileAreServed() throws {
    let server = try TestServer()
    server.folder.write("sparse", [])
    let length: Int64 = 5_000_000_000
    #expect(server.folder.extend("sparse", to: length))
    let answer = try server.ask("GET", "/sparse", [("Range", "bytes=4999999990-")])
    #expect(answer.status == 206)
    #expect(answer.body == [UInt8](repeating: 0, count: 10))
  }

  @Test func theListingIsSortedEscapedAndLinked() throws {
    let server = try TestServer()
    server.folder.write("b.txt", pattern(2048))
    server.folder.write("a:b", [1])
    server.folder.write("<i>&\"'.txt", [1])
    server.folder.write(BytePath([0xFF]), [1])
    server.folder.write(".hidden", [1])
    server.folder.makeFolder("sub")
    let answer = try server.ask("GET", "/")
    #expect(answer.status == 200)
    #expect(answer["Content-Type"] == "text/html; charset=utf-8")
    #expect(answer["Content-Security-Policy"]?.contains("default-src 'none'") == true)
    let names = answer.text.split(separator: "\n").filter { $0.contains("href") }
    #expect(names.count == 5)
    #expect(names[0].contains(#"<a href="./%3Ci%3E%26%22%27.txt">&lt;i&gt;&amp;&quot;&#39;.txt</a>"#))
    #expect(names[1].contains(#"href="./a%3Ab""#))
    #expect(names[2].contains(#"href="./b.txt""#) && names[2].contains("2.0 KiB"))
    #expect(names[3].contains(#"<a href="./sub/">sub/</a>"#))
    #expect(names[4].contains(#"href="./%FF">"# + "\u{FFFD}"))
    #expect(!answer.text.contains("hidden") && !answer.text.contains("fullbore"))
  }

  @Test func foldersEndWithASlash() throws {
    let server = try TestServer()
    server.folder.makeFolder("sub ")
    server.folder.write("sub /f", [1])
    let answer = try server.ask("GET", "/sub%20")
    #expect(answer.status == 301)
    #expect(answer["Location"] == "/sub%20/")
    #expect(try server.ask("GET", "/sub%20/").text.contains("./f"))
    #expect(try server.ask("GET", "/sub%20/f/").status == 404)
    #expect(try server.ask("GET", "/sub%20/f/g").status == 404)
    #expect(try server.ask("GET", "/none/").status == 404)
  }

  @Test func datesAreAsHTTPHasThem() {
    // The example from RFC 9110 §5.6.7.
    #expect(HTTPDate.text(784_111_777_000_000_000) == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate.text(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
  }

  /// The order of preconditions. RFC 9110 §13.2.2.
  @Test(arguments: ["GET", "HEAD"]) func preconditionsAreHeeded(_ method: String) throws {
    let server = try TestServer()
    let put = try server.ask("PUT", "/a", [("X-OC-MTime", "1000000000")], body: [1, 2])
    let etag = try #require(put["ETag"])
    let (before, at, after) = (
      "Sun, 09 Sep 2001 01:46:39 GMT", "Sun, 09 Sep 2001 01:46:40 GMT", "Sun, 09 Sep 2001 01:46:41 GMT"
    )
    let cases: [([(String, String)], Int)] = [
      ([("If-Match", etag)], 200), ([("If-Match", "*")], 200), ([("If-Match", "\"b\", \(etag)")], 200),
      ([("If-Match", "\"b\"")], 412), ([("If-Match", "W/" + etag)], 412),
      ([("If-Unmodified-Since", before)], 412), ([("If-Unmodified-Since", at)], 200),
      ([("If-Unmodified-Since", before), ("If-Match", etag)], 200), ([("If-Unmodified-Since", "soon")], 200),
      ([("If-None-Match", etag)], 304), ([("If-None-Match", "\"b\"")], 200), ([("If-None-Match", "*")], 304),
      ([("If-None-Match", "W/" + etag)], 304), ([("If-None-Match", etag), ("If-Match", "\"b\"")], 412),
      ([("If-Modified-Since", before)], 200), ([("If-Modified-Since", at)], 304), ([("If-Modified-Since", after)], 304),
      ([("If-Modified-Since", after), ("If-None-Match", "\"b\"")], 200), ([("If-Modified-Since", "soon")], 200),
    ]
    for (headers, status) in cases {
      let answer = try server.ask(method, "/a", headers)
      #expect(answer.status == status, "\(headers)")
      if status == 304 { #expect(answer["ETag"] == etag) }
    }
  }
}
