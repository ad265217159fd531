import BlobServer
import Testing

/// An entity tag may contain any visible character between its quotes. RFC 9110 §8.8.3.
struct EntityTagTests {
  /// Each element is one entity tag, or two, and none of them is the file's.
  private static let others = [
    #""a,*,b""#, #""a, *, b""#, #"W/"*,""#, #""*""#, #"",*,""#, #""x", "a,*""#, #""a\","*,""#, "",
    ",",
  ]

  @Test(arguments: others) func aTagWithAnAsteriskIsNotEveryTag(_ tag: String) throws {
    let server = try TestServer { $0.allowsDelete = true }
    server.folder.write("a", [1])
    let condition = ("If-Match", tag)
    #expect(try server.ask("PUT", "/a", [condition], body: [2, 3]).status == 412)
    #expect(try server.ask("PUT", "/a", [condition, ("Upload-Complete", "?1")], body: [2, 3]).status == 412)
    #expect(try server.ask("PUT", "/new", [condition], body: [2, 3]).status == 412)
    #expect(try server.ask("DELETE", "/a", [condition]).status == 412)
    #expect(try server.ask("GET", "/a", [condition]).status == 412)
    #expect(server.folder.read("a") == [1] && server.folder.read("new") == nil)
  }

  @Test(arguments: others) func aFormReplacesNothingByATagWithAnAsterisk(_ tag: String) throws {
    let server = try TestServer()
    server.folder.write("x", [1])
    let form = Array("--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\nbytes\r\n--b--\r\n".utf8)
    let type = ("Content-Type", "multipart/form-data; boundary=b")
    #expect(try server.ask("POST", "/", [type, ("If-Match", tag)], body: form).status == 412)
    #expect(server.folder.read("x") == [1])
  }

  @Test(arguments: others) func aTagWithAnAsteriskExcludesNothing(_ tag: String) throws {
    let server = try TestServer()
    server.folder.write("a", [1])
    let condition = ("If-None-Match", tag)
    #expect(try server.ask("PUT", "/a", [condition], body: [1]).status == 204)
    #expect(try server.ask("GET", "/a", [condition]).status == 200)
  }

  @Test func aListIsReadByItsQuotes() throws {
    let server = try TestServer()
    server.folder.write("a", [1])
    let tag = try #require(try server.ask("HEAD", "/a")["ETag"])
    for list in [#""a,*,b", \#(tag)"#, #",, \#(tag) ,"x,""#, #""\",\#(tag)"#] {
      #expect(try server.ask("GET", "/a", [("If-Match", list)]).status == 200, "\(list)")
      #expect(try server.ask("GET", "/a", [("If-None-Match", list)]).status == 304, "\(list)")
    }
    let lines = [("If-Match", #""x,""#), ("If-Match", tag)]
    #expect(try server.ask("GET", "/a", lines).status == 200)
    #expect(try server.ask("GET", "/a", [("If-Match", #""x, \#(tag.dropFirst())"#)]).status == 412, "one tag")
    #expect(try server.ask("PUT", "/a", [("If-Match", " * ")], body: [2]).status == 204)
    #expect(try server.ask("PUT", "/a", [("If-None-Match", "*")], body: [2]).status == 412)
  }
}
