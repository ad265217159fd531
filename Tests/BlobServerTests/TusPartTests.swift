import Testing

/// Parts that cannot be concatenated.
struct TusPartTests {
  /// Either the part is deleted, or the final upload claims it: never both.
  @Test func aPartIsDeletedOrClaimed() throws {
    let server = try TestServer()
    let (one, other) = (try server.client(), try server.client())
    var claimed = 0
    for round in 0..<200 {
      let parts = try (0..<2).map { _ in try server.createPart(length: 1) }
      let concat = ("Upload-Concat", "final;" + parts.joined(separator: " "))
      let name = ("Upload-Metadata", "filename \(base64("\(round)"))")
      try one.head("POST", "/", [tus, concat, name, ("Content-Length", "0")])
      try other.head("DELETE", parts[1], [tus])
      let (final, deleted) = (try one.answer(), try other.answer())
      if final.status == 201 {
        claimed += 1
        #expect(deleted.status == 409, "round \(round): the final upload has a part that is gone")
        #expect(try server.ask("HEAD", parts[1], [tus]).status == 200)
        #expect(try server.ask("DELETE", #require(final["Location"]), [tus]).status == 204)
      } else {
        #expect([404, 410].contains(final.status), "\(final.status): \(final.text)")
        #expect(deleted.status == 204)
        #expect(try server.ask("DELETE", parts[0], [tus]).status == 204)
      }
    }
    print("\(claimed) of 200 parts were claimed before they were deleted")
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func aPartOfAFinishedUploadCanBeDeleted() throws {
    let server = try TestServer()
    let parts = try server.parts([1, 2, 3], cuts: [1])
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(try server.ask("DELETE", parts[1], [tus]).status == 204)
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  @Test func partsThatAreTooLongTogetherAreRefused() throws {
    let server = try TestServer()
    let huge = [try server.createPart(length: 1 << 62), try server.createPart(length: 1 << 62)]
    #expect(try server.join(huge, name: "x").status == 413)
    let small = try TestServer { $0.maxSize = 100 }
    // One part has no length yet, but the others already exceed the limit together.
    let parts = try [60, nil, 41].map { try small.createPart(length: $0) }
    #expect(try small.join(parts, name: "x").status == 413)
    #expect(try small.join(parts[..<2], name: "x").status == 201, "a refusal claims nothing")
    for part in huge { #expect(try server.ask("DELETE", part, [tus]).status == 204) }
  }
}
