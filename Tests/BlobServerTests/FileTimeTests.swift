import BlobServer
import Blobs
import Platform
import Testing

/// Modification times of files: of any year, and as clients send them.
struct FileTimeTests {
  /// 64 bits of nanoseconds end on 2262-04-11.
  @Test(
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
      (-2_000_000_000, "Thu, 16 Aug 1906 20:26:40 GMT"), (9_223_372_036, "Fri, 11 Apr 2262 23:47:16 GMT"),
      (9_223_372_037, "Fri, 11 Apr 2262 23:47:17 GMT"), (10_413_792_000, "Mon, 01 Jan 2300 00:00:00 GMT"),
    ])
  func aFileOfAnyTimeIsServed(_ seconds: Int, _ text: String) throws {
    let folder = try TestFolder()
    folder.write("old", [1])
    try #require(folder.setModified("old", seconds, 500_000_000))
    let server = try TestServer(over: folder) { $0.maxTotal = 1000 }
    let answer = try server.ask("GET", "/old")
    #expect(answer.body == [1])
    if folder.modified("old").seconds == seconds {  // only if the file system supports this time
      #expect(answer["Last-Modified"] == text)
    }
    #expect(try server.ask("GET", "/").text.contains("old"))
    #expect(try server.ask("PUT", "/old", body: [1]).status == 204)
  }

  /// An unfinished upload whose bytes or record have a time in the future, because the clock was set back.
  @Test func anUploadOfAnyTimeIsFound() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: 3)
      #expect(try server.patch(upload, at: 0, [1]).status == 204)
    }
    for name in folder.kept { try #require(folder.setModified(BytePath(".fullbore/\(name)"), 10_413_792_000, 0)) }
    let server = try TestServer(over: folder) { $0.expire = .seconds(Int64.max) }
    #expect(try server.offset(upload) == 1)
    #expect(try server.patch(upload, at: 1, [2, 3]).status == 204)
  }

  private static let told: [(text: String, seconds: Int, nanoseconds: Int)] = [
    ("1700000000", 1_700_000_000, 0), ("0", 0, 0), ("1700000000.123456789", 1_700_000_000, 123_456_789),
    ("1700000000.5", 1_700_000_000, 500_000_000), ("-1", -1, 0), ("-0.25", -1, 750_000_000),
    ("-2.000000001", -3, 999_999_999), ("00012", 12, 0),
  ]

  private static let garbage = [
    "", " ", "x", "1e9", "0x10", "+5", "--5", "1.", ".5", "1.1234567890", "1,5", "1 2", "-", "1.-5", "1.5.5", "NaN",
    "99999999999999999999", "9223372036854775807", "-9223372036854775808", "٣", "1\u{301}",
  ]

  @Test func aPUTSetsTheModificationTime() throws {
    let server = try TestServer()
    for (number, told) in Self.told.enumerated() {
      let answer = try server.ask("PUT", "/\(number)", [("X-OC-MTime", told.text)], body: [1])
      #expect(answer.status == 201)
      #expect(answer["X-OC-MTime"] == "accepted", "\(told.text)")
      let modified = server.folder.modified(BytePath("\(number)"))
      #expect(modified == (told.seconds, told.nanoseconds), "\(told.text)")
    }
  }

  @Test(arguments: garbage) func anInvalidModificationTimeIsIgnored(_ text: String) throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("X-OC-MTime", text)], body: [1])
    #expect(answer.status == 201)
    #expect(answer["X-OC-MTime"] == nil)
    let metadata = ("Upload-Metadata", "filename \(base64("y")),mtime \(base64(text))")
    #expect(try server.ask("POST", "/", [tus, ("Upload-Length", "0"), metadata], body: []).status == 201)
    for name in ["x", "y"] as [BytePath] { #expect(abs(server.folder.modified(name).seconds - time(nil)) < 60) }
  }

  /// A file system has its own limits: ext4 stores its latest time instead of a later one.
  @Test(arguments: [253_402_300_799, -62_135_596_800, 32_503_680_000, 0]) func aTimeIsAcceptedOnlyIfTheFileHasIt(
    _ seconds: Int
  ) throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("X-OC-MTime", "\(seconds)")], body: [1])
    #expect(answer.status == 201)
    let found = server.folder.modified("x").seconds
    if answer["X-OC-MTime"] != nil { return #expect(found == seconds) }
    #expect(abs(found - time(nil)) < 60, "its own time is better than one that nobody told")
    #expect(try server.ask("HEAD", "/x")["ETag"] == answer["ETag"])
  }

  @Test func aModificationTimeGivenTwiceIsIgnored() throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("X-OC-MTime", "1"), ("X-OC-MTime", "2")], body: [1])
    #expect(answer["X-OC-MTime"] == nil)
  }

  /// A file that already has the same bytes is not changed, and keeps its time.
  @Test func equalBytesKeepTheirTime() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", [("X-OC-MTime", "1000")], body: [1])["X-OC-MTime"] == "accepted")
    let again = try server.ask("PUT", "/x", [("X-OC-MTime", "2000")], body: [1])
    #expect(again.status == 204 && again["X-OC-MTime"] == nil)
    #expect(server.folder.modified("x") == (1000, 0))
    #expect(try server.ask("PUT", "/x", [("X-OC-MTime", "1000")], body: [1])["X-OC-MTime"] == "accepted")
    let replaced = try server.ask("PUT", "/x", [("X-OC-MTime", "2000"), ("If-Match", "*")], body: [2])
    #expect(replaced["X-OC-MTime"] == "accepted")
    #expect(server.folder.modified("x") == (2000, 0))
  }

  @Test func aTusUploadKeepsItsModificationTimeOverARestart() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: 3, metadata: ",mtime \(base64("1234567.5"))")
      #expect(try server.patch(upload, at: 0, [1]).status == 204)
    }
    let server = try TestServer(over: folder)
    #expect(try server.patch(upload, at: 1, [2, 3]).status == 204)
    #expect(folder.modified("x") == (1_234_567, 500_000_000))
    #expect(try server.ask("GET", "/x")["Last-Modified"] == "Thu, 15 Jan 1970 06:56:07 GMT")
  }

  @Test func aTusUploadInPartsSetsTheModificationTime() throws {
    let server = try TestServer()
    let parts = try ["1", "2"].map { _ in
      let answer = try server.ask("POST", "/", [tus, ("Upload-Length", "1"), ("Upload-Concat", "partial")], body: [])
      return try #require(answer["Location"])
    }
    for part in parts { #expect(try server.patch(part, at: 0, [1]).status == 204) }
    let metadata = ("Upload-Metadata", "filename \(base64("x")),mtime \(base64("77"))")
    let final = ("Upload-Concat", "final;\(parts.joined(separator: " "))")
    #expect(try server.ask("POST", "/", [tus, final, metadata], body: []).status == 201)
    #expect(server.folder.modified("x") == (77, 0))
  }

  @Test func anIETFUploadKeepsItsModificationTimeOverARestart() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      let answer = try server.ask("POST", "/x", [("Upload-Complete", "?0"), ("X-OC-MTime", "99")], body: [1])
      upload = try #require(answer["Location"])
      let whole = try server.ask("PUT", "/y", [("Upload-Complete", "?1"), ("X-OC-MTime", "-5")], body: [1])
      #expect(whole.status == 201 && whole["X-OC-MTime"] == "accepted")
      #expect(folder.modified("y") == (-5, 0))
    }
    let server = try TestServer(over: folder)
    let head = [
      ("Upload-Complete", "?1"), ("Upload-Offset", "1"), ("Content-Type", "application/partial-upload"),
    ]
    #expect(try server.ask("PATCH", upload, head, body: [2]).status == 201)
    #expect(folder.modified("x") == (99, 0))
  }

  /// A field `mtime` applies only to the next file.
  @Test func aFormSetsTheModificationTimesOfItsFiles() throws {
    let server = try TestServer()
    func field(_ name: String, _ value: String) -> String {
      "--B\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n"
    }
    func file(_ name: String) -> String {
      "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\(name)\"\r\n\r\n1\r\n"
    }
    let long = String(repeating: "1", count: 100_000)
    let form =
      field("mtime", "11") + file("a") + file("b") + field("mtime", "x") + file("c") + field("mtime", long) + file("d")
      + field("other", "5") + file("e") + field("mtime", "12.5") + field("other", "6") + file("g") + "--B--\r\n"
    let type = ("Content-Type", "multipart/form-data; boundary=B")
    #expect(try server.ask("POST", "/", [type], body: Array(form.utf8)).status == 201)
    #expect(server.folder.modified("a") == (11, 0))
    #expect(server.folder.modified("g") == (12, 500_000_000))
    for name in ["b", "c", "d", "e"] as [BytePath] {
      #expect(abs(server.folder.modified(name).seconds - time(nil)) < 60, "\(name)")
    }
  }

  /// A file with the same length and time replaces another, perhaps with the same inode.
  @Test func filesOfTheSameTimeHaveDifferentETags() throws {
    let server = try TestServer()
    var seen: Set<String> = []
    for number in 0..<20 {
      let head = [("X-OC-MTime", "1000")] + (number == 0 ? [] : [("If-Match", "*")])
      let etag = try #require(try server.ask("PUT", "/x", head, body: [UInt8(number)])["ETag"])
      #expect(try server.ask("GET", "/x")["ETag"] == etag)
      seen.insert(etag)
      usleep(11_000)  // one tick of the kernel's clock for file times
    }
    #expect(seen.count == 20)
  }
}

extension TestFolder {
  func setModified(_ name: BytePath, _ seconds: Int, _ nanoseconds: Int) -> Bool {
    path.appending(name).withCString { place in
      let then = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
      return utimensat(AT_FDCWD, place, [then, then], 0) == 0
    }
  }

  func modified(_ name: BytePath) -> (seconds: Int, nanoseconds: Int) {
    var status = stat()
    _ = path.appending(name).withCString { stat($0, &status) }
    return (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
