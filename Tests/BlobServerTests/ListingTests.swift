import Blobs
import Testing

/// Listings of folders with many names.
struct ListingTests {
  private func server(names: Int) throws -> TestServer {
    let server = try TestServer()
    for number in 0..<names { server.folder.write(BytePath("file \(number).jpg"), []) }
    return server
  }

  /// Sixty clients request a listing each. An upload at that time does not wait for the listings, which take much
  /// longer.
  @Test func filesDoNotWaitForPages() throws {
    let server = try server(names: 500)
    let clock = ContinuousClock()
    // Beside other work, a thread may get its turn late. A file that waits for the listings does so each time.
    var isSoon = false
    for round in 0..<3 where !isSoon {
      let readers = try (0..<60).map { _ in try server.client() }
      let began = clock.now
      for reader in readers { try reader.head("GET", "/") }
      #expect(try server.ask("PUT", "/new\(round)", body: [1]).status == 201)
      let stored = clock.now
      for reader in readers { #expect(try reader.answer().text.contains(">file 499.jpg<")) }
      let (file, pages) = (stored - began, clock.now - began)
      print("the file took \(file), all pages \(pages)")
      isSoon = file < pages / 2
    }
    #expect(isSoon)
  }

  /// A listing stays in memory until its client has read it, so their number is limited.
  @Test func onlySoManyPagesAreMadeAtATime() throws {
    let server = try server(names: 300)
    server.folder.makeFolder("empty")
    let readers = try (0..<150).map { _ in try server.client() }
    for reader in readers { try reader.head("GET", "/") }
    var statuses: [Int: Int] = [:]
    for reader in readers {
      let answer = try reader.answer()
      statuses[answer.status, default: 0] += 1
      if answer.status == 503 { #expect(answer["Retry-After"] != nil) }
    }
    let (made, refused) = (statuses[200] ?? 0, statuses[503] ?? 0)
    #expect(made >= 64 && refused > 0 && made + refused == 150, "\(statuses)")
    // Listings that were read, or whose clients have disconnected, make room for others.
    for _ in 0..<100 { #expect(try readers[0].ask("GET", "/empty/").status == 200) }
    for _ in 0..<100 { try server.client().head("GET", "/empty/") }
    #expect(try eventually { try server.ask("GET", "/empty/").status == 200 })
  }

  /// A page is in memory as a whole, so a folder with many names takes several.
  @Test func aFolderWithManyNamesTakesSeveralPages() throws {
    let server = try TestServer()
    for number in 10_000..<20_010 { server.folder.write(BytePath("a&b \(number)"), []) }
    var (url, seen, pages) = ("/", 0, 0)
    while pages < 5 {
      let answer = try server.ask("GET", url)
      #expect(answer.status == 200)
      pages += 1
      let lines = answer.text.split(separator: "\n")
      let rows = lines.filter { $0.contains(">a&amp;b ") }
      #expect(rows.count <= 10_000)
      for row in rows {
        #expect(row.contains(">a&amp;b \(10_000 + seen)<"))
        seen += 1
      }
      guard let link = lines.first(where: { $0.contains("?after=") })?.split(separator: "\"")[1] else { break }
      url = "/" + link.dropFirst(2)
    }
    #expect(seen == 10_010 && pages == 2, "\(seen) names on \(pages) pages")
    #expect(try server.ask("GET", "/?after=z").text.contains("no more names"))
    #expect(try server.ask("GET", "/?after=%zz").status == 400)
    #expect(try server.ask("GET", "/?after=a&after=b").status == 400)
  }
}
