import BlobServer
import Blobs
import Testing

/// An upload counts as finished only as long as its published file exists: a client whose last response was lost asks
/// for the upload, and would otherwise assume that the file exists.
struct DeletedFileTests {
  /// Changes to a published file `x` of three bytes.
  enum Change: CaseIterable {
    case deleted, moved, replaced, replacedByAnUpload, replacedByAFolder

    func apply(_ server: TestServer) throws {
      let folder = server.folder
      switch self {
      case .deleted: folder.remove("x")
      case .moved: folder.rename("x", to: "y")
      case .replaced:
        folder.remove("x")
        folder.write("x", [7, 8, 9])
      case .replacedByAnUpload:
        #expect(try server.ask("PUT", "/x", [("If-Match", "*")], body: [7, 8, 9]).status == 204)
      case .replacedByAFolder:
        folder.remove("x")
        folder.makeFolder("x")
      }
    }
  }

  private let draft = [("Upload-Draft-Interop-Version", "8")]

  private func expectGone(_ server: TestServer, _ upload: String) throws {
    for _ in 1...2 {
      #expect([404, 410].contains(try server.ask("HEAD", upload, [tus]).status))
      #expect([404, 410].contains(try server.patch(upload, at: 3, []).status))
      #expect([404, 410].contains(try server.ask("HEAD", upload, draft).status))
      let patch =
        draft + [
          ("Upload-Complete", "?1"), ("Upload-Offset", "3"), ("Content-Type", "application/partial-upload"),
        ]
      #expect([404, 410].contains(try server.ask("PATCH", upload, patch, body: []).status))
    }
    #expect(server.folder.kept.isEmpty, "\(server.folder.kept)")
  }

  @Test(arguments: Change.allCases, [false, true])
  func aFinishedUploadIsGoneWithItsFile(_ change: Change, afterARestart: Bool) throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("x", length: 3)
      #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 204)
      #expect(try server.offset(upload) == 3)
      if !afterARestart {
        try change.apply(server)
        return try expectGone(server, upload)
      }
    }
    let server = try TestServer(over: folder)
    #expect(try server.offset(upload) == 3)
    try change.apply(server)
    try expectGone(server, upload)
  }

  @Test(arguments: Change.allCases) func anUploadInOneRequestIsGoneWithItsFile(_ change: Change) throws {
    let server = try TestServer()
    let head = [
      tus, ("Upload-Length", "3"), ("Upload-Metadata", "filename \(base64("x"))"),
      ("Content-Type", "application/offset+octet-stream"),
    ]
    let upload = try #require(try server.ask("POST", "/", head, body: [1, 2, 3])["Location"])
    #expect(try server.offset(upload) == 3)
    try change.apply(server)
    try expectGone(server, upload)
  }

  /// The same bytes existed before, so the upload's own file was not published.
  @Test func anUploadThatMetEqualBytesIsGoneWithThem() throws {
    let server = try TestServer()
    server.folder.write("x", [1, 2, 3])
    let upload = try server.create("x", length: 3)
    #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 204)
    #expect(try server.offset(upload) == 3)
    server.folder.remove("x")
    try expectGone(server, upload)
  }

  @Test(arguments: [false, true]) func aFinalUploadAndItsPartsAreGoneWithTheFile(afterARestart: Bool) throws {
    let folder = try TestFolder()
    var server = try TestServer(over: folder)
    let parts = try server.parts([1, 2, 3], cuts: [2])
    let final = try #require(try server.join(parts, name: "x")["Location"])
    if afterARestart {
      server.server.stop(grace: .zero)
      server = try TestServer(over: folder)
    }
    #expect(try server.offset(final) == 3)
    #expect(try server.offset(parts[0]) == 2)
    folder.remove("x")
    // A client that resumes the upload asks for its parts.
    #expect([404, 410].contains(try server.ask("HEAD", parts[0], [tus]).status))
    #expect([404, 410].contains(try server.join(parts, name: "x").status))
    try expectGone(server, final)
    let again = try server.parts([1, 2, 3], cuts: [2])
    #expect(try server.join(again, name: "x").status == 201)
    #expect(folder.read("x") == [1, 2, 3])
  }

  /// Somebody deletes the bytes of an unfinished upload, for example to free space. A file of its length that already has the
  /// name is not the upload.
  @Test(arguments: [false, true]) func anUnfinishedUploadWithoutItsBytesIsNotTheFileOfItsName(isRestarted: Bool) throws
  {
    let folder = try TestFolder()
    var server = try TestServer(over: folder)
    folder.write("x", [7, 8, 9])
    let upload = try server.create("x", length: 3, metadata: ",overwrite \(base64("true"))")
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    if isRestarted { server.server.stop(grace: .zero) }
    let data = try #require(folder.kept.first { $0.hasSuffix(".data") })
    folder.remove(BytePath(".fullbore/\(data)"))
    if isRestarted { server = try TestServer(over: folder) }
    // The answer to the PATCH may arrive before the server has closed the file of the bytes, which can still be read then.
    #expect(try eventually { try [404, 410].contains(server.ask("HEAD", upload, [tus]).status) })
    try expectGone(server, upload)
    #expect(folder.read("x") == [7, 8, 9])
  }

  /// The server was killed after it had published the file, and before it noted that.
  @Test(arguments: [true, false]) func aPublishedFileIsKnownByItsInode(isSame: Bool) throws {
    let folder = try TestFolder()
    let first = try TestServer(over: folder)
    let upload = try first.create("x", length: 3)
    #expect(try first.patch(upload, at: 0, [1, 2]).status == 204)
    first.server.stop(grace: .zero)
    let data = try #require(folder.kept.first { $0.hasSuffix(".data") })
    let kept = BytePath(".fullbore/\(data)")
    #expect(folder.extend(kept, to: 3))
    if isSame {
      folder.rename(kept, to: "x")
    } else {
      folder.write("x", [1, 2, 3])
      folder.remove(kept)
    }
    let server = try TestServer(over: folder)
    let state = try server.ask("HEAD", upload, [tus])
    #expect(isSame ? state["Upload-Offset"] == "3" : [404, 410].contains(state.status))
  }

  /// Earlier servers did not record the version of the file, so only its length can be compared.
  @Test func aRecordWithoutTheFilesVersionGoesByItsLength() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }
    for (digit, name) in [("1", "same"), ("2", "longer"), ("3", "missing")] as [(Character, String)] {
      let record = "fullbore upload 1\ntarget \(name)\nexisting keep\nlength 3\nmetadata \n"
      folder.write(BytePath(".fullbore/\(id(digit)).done"), Array(record.utf8))
    }
    folder.write("same", [1, 2, 3])
    folder.write("longer", [1, 2, 3, 4])
    let server = try TestServer(over: folder)
    #expect(try server.offset("/.fullbore-upload/\(id("1"))") == 3)
    for digit in ["2", "3"] as [Character] {
      #expect([404, 410].contains(try server.ask("HEAD", "/.fullbore-upload/\(id(digit))", [tus]).status))
    }
  }
}
