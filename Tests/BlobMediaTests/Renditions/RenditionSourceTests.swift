import BlobHTTP
import BlobMedia
import BlobStreams
import BlobTesting
import Blobs
import Foundation
import Testing

@Suite(.serialized) struct RenditionSourceTests {
  static let cut = PhotoEdit(.corners(left: 0.125, top: 0.25, right: 0.875, bottom: 1, angle: 0))
  static let fixtures: [SourceFixture] = {
    do {
      let photo = try Photograph()
      let whole = try photo.rendition(cut).bytes()
      let stalled: @Sendable () throws -> any BlobSource = {
        try photo.rendition(cut, by: try photo.program("exec sleep 1000"))
      }
      var plain = SourceFixture(
        "a rendition", like: whole, access: .sequential, knowsLength: false, stalled: stalled
      ) { try photo.rendition(cut) }
      var measured = SourceFixture("a measured rendition", like: whole, access: .sequential) {
        try photo.rendition(cut).measured(Cancellation())
      }
      (plain.goesBack, measured.goesBack) = (true, true)
      return [plain, measured]
    } catch {
      fatalError("no rendition to check: \(error)")
    }
  }()

  @Test(arguments: fixtures, SourceCheck.all)
  func conforms(_ fixture: SourceFixture, _ check: SourceCheck) async throws { try await check.run(fixture) }

  @Test func theSameInputGivesTheSameBytes() throws {
    let edit = PhotoEdit(.corners(left: 0.1, top: 0.1, right: 0.9, bottom: 0.9, angle: 4), orientation: .init(6))
    let (one, other) = (try Photograph(), try Photograph())
    let bytes = try one.rendition(edit).bytes()
    #expect(try other.rendition(edit).bytes() == bytes)
    #expect(size(ofJPEG: bytes) == [46, 80])
    #expect(try one.rendition(edit, quality: 50).bytes().count < bytes.count)
  }

  @Test func anotherReaderGoesOnAnywhere() throws {
    let photo = try Photograph()
    defer { withExtendedLifetime(photo) {} }
    let source = try photo.rendition(Self.cut)
    let bytes = try source.bytes()
    for offset in [0, 1, 700, bytes.count - 1, bytes.count, 20] {
      #expect(try source.bytes(from: Int64(offset)) == Array(bytes[offset...]))
    }
  }

  @Test func everythingThatMattersIsInItsVersion() throws {
    let photo = try Photograph()
    let source = try photo.rendition(Self.cut)
    let version = try source.info(Cancellation()).validator
    #expect(try photo.rendition(Self.cut).info(Cancellation()).validator == version)
    #expect(try photo.rendition(Self.cut, quality: 92).info(Cancellation()).validator != version)
    #expect(try photo.rendition(PhotoEdit(orientation: .init(3))).info(Cancellation()).validator != version)
    #expect(try photo.rendition(Self.cut, by: photo.program("")).info(Cancellation()).validator != version)
    try photo.write(Data("other notes".utf8), to: photo.sidecar)
    let renamed = try source.info(Cancellation()).validator
    #expect(renamed != version)
    try photo.write(Photograph.picture + [0], to: photo.original)
    #expect(try source.info(Cancellation()).validator != renamed)
  }

  @Test(arguments: ["original", "sidecar"]) func aRenditionFailsIfItsFilesChangeWhileItIsRead(_ which: String) throws {
    let photo = try Photograph()
    let source = try photo.rendition(Self.cut)
    let reader = try BlobSlice(source).open(Cancellation())
    var chunk = [UInt8](repeating: 0, count: 500)
    #expect(try chunk.withUnsafeMutableBytes { try reader.read(into: $0) } > 0)
    try photo.write(Photograph.picture + [0], to: which == "original" ? photo.original : photo.sidecar, age: 500)
    let error = #expect(throws: BlobError.self) {
      while try chunk.withUnsafeMutableBytes({ try reader.read(into: $0) }) > 0 {}
    }
    #expect(error?.code == .changed)
  }

  /// Any failure of the helper is reported, and its output then never counts as complete.
  @Test(arguments: [
    ("kill -SEGV $$", "signal 11"), ("echo half; kill -ABRT $$", "signal 6"), ("exit 7", "status 7"),
    ("echo half; echo 'it is broken' >&2; exit 1", "it is broken"),
  ])
  func anAbortedHelperFailsOnePicture(_ script: String, _ words: String) throws {
    let photo = try Photograph()
    let error = #expect(throws: BlobError.self) {
      try photo.rendition(Self.cut, by: try photo.program(script)).bytes()
    }
    #expect(error?.code == .io && error!.message.contains(words), "\(error as Any)")
  }

  @Test func damagedPicturesAreRefusedAndNotRenderedInPart() throws {
    let (photo, whole) = (try Photograph(Photograph.picture.prefix(800)), try Photograph())
    defer { withExtendedLifetime((photo, whole)) {} }
    let error = #expect(throws: BlobError.self) { try photo.rendition(Self.cut).bytes() }
    #expect(error?.code == .io, "\(error as Any)")
    let noise = try Photograph(Data("no picture at all".utf8))
    let refusal = try Renderer(Photograph.program).refusal(of: Self.cut, on: FileSource(noise.original))
    #expect(refusal?.description.contains("neither JPEG nor HEIC") == true, "\(refusal as Any)")
    let beyond = PhotoEdit(.corners(left: 0, top: 0, right: 1, bottom: 1, angle: 10))
    let answer = try Renderer(Photograph.program).refusal(of: beyond, on: FileSource(whole.original))
    #expect(answer?.description == "the frame reaches beyond the picture")
  }

  /// There are as many helpers as readers, and no more.
  @Test func noHelperOutlivesItsSource() throws {
    let photo = try Photograph()
    // The program prints its pid and waits.
    let program = try photo.program("echo $$; exec sleep 1000")
    var pid: pid_t = 0
    do {
      let reader = try photo.rendition(Self.cut, by: program).open(at: 0, Cancellation())
      var chunk = [UInt8](repeating: 0, count: 50)
      let count = try chunk.withUnsafeMutableBytes { try reader.read(into: $0) }
      pid = try #require(pid_t(String(decoding: chunk.prefix(count), as: UTF8.self).dropLast()))
      #expect(kill(pid, 0) == 0)
    }
    #expect(kill(pid, 0) == -1 && errno == ESRCH)
  }

  /// The helper stalls at once, or in the middle of a picture: its output then does not count as complete.
  @Test(arguments: ["exec sleep 1000", "echo half; exec sleep 1000"])
  func aHelperThatHangsIsEnded(_ script: String) throws {
    let photo = try Photograph()
    let noted = photo.folder.path.appending("pid")
    let program = try photo.program("echo $$ > '\(noted)'; \(script)")
    // By default it is longer than any picture takes.
    #expect(try Renderer(program).patience == .seconds(120))
    let source = try photo.rendition(Self.cut, by: program, patience: .milliseconds(1500))
    let start = ContinuousClock.now
    let error = #expect(throws: BlobError.self) { try source.bytes() }
    #expect(error?.code == .io && error!.message.contains("it hangs"), "\(error as Any)")
    let time = ContinuousClock.now - start
    #expect(time >= .milliseconds(1500) && time < .seconds(60), "\(time)")
    let text = try String(contentsOfFile: noted.description, encoding: .utf8)
    let pid = try #require(pid_t(text.dropLast()))
    #expect(kill(pid, 0) == -1 && errno == ESRCH)

    var renderer = try Renderer(program)
    renderer.patience = .milliseconds(100)
    let refused = #expect(throws: BlobError.self) { try renderer.refusal(of: Self.cut, on: FileSource(photo.original)) }
    #expect(refused?.message.contains("it hangs") == true, "\(refused as Any)")
  }

  /// All output has arrived, but the helper does not end, and is silent or prints more messages.
  @Test(arguments: ["exec sleep 1000", "while sleep 0.05; do echo 'not yet' >&2; done"])
  func aHelperThatDoesNotEndIsEnded(_ script: String) throws {
    let photo = try Photograph()
    let noted = photo.folder.path.appending("pid")
    let program = try photo.program("echo $$ > '\(noted)'; echo whole; exec >&-; \(script)")
    let source = try photo.rendition(Self.cut, by: program, patience: .milliseconds(1500))
    let start = ContinuousClock.now
    let error = #expect(throws: BlobError.self) { try source.bytes() }
    #expect(error?.code == .io && error!.message.contains("did not end for 1.5 seconds"), "\(error as Any)")
    let time = ContinuousClock.now - start
    #expect(time >= .milliseconds(1500) && time < .seconds(60), "\(time)")
    let text = try String(contentsOfFile: noted.description, encoding: .utf8)
    let pid = try #require(pid_t(text.dropLast()))
    #expect(kill(pid, 0) == -1 && errno == ESRCH)
  }

  @Test func aStreamAndAFormCarryIt() throws {
    let photo = try Photograph()
    defer { withExtendedLifetime(photo) {} }
    let source = try photo.rendition(Self.cut)
    let bytes = try source.bytes()
    let stream = BlobInputStream(source)
    stream.open()
    var read: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 777)
    while case let count = stream.read(&chunk, maxLength: chunk.count), count > 0 { read += chunk.prefix(count) }
    stream.close()
    #expect(read == bytes)

    var form = MultipartForm(boundary: "boundary")
    form.appendPart(source, name: "photo", fileName: "IMG_E0001.JPG", mimeType: "image/jpeg")
    let sent = try form.bytes()
    #expect(sent.firstRange(of: bytes) != nil)
    #expect(sent.starts(with: "--boundary\r\n".utf8))
  }

  /// Orientation, sizes and the thumbnail are corrected; all other metadata stays unchanged.
  @Test func metadataIsKeptAndMadeTrue() throws {
    let (exif, xmp) = (Self.exif(orientation: 6), "<x tiff:Orientation=\"6\" note=\"kept\"/>")
    var picture = Photograph.picture
    func add(_ marker: UInt8, _ content: [UInt8]) {
      let head = [0xFF, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 0xFF)]
      picture.insert(contentsOf: head + content, at: 2)
    }
    add(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + Self.profile)
    add(0xE1, Array("http://ns.adobe.com/xap/1.0/\0\(xmp)".utf8))
    add(0xE1, Array("Exif\0\0".utf8) + exif)
    let photo = try Photograph(picture)
    #expect(PhotoOrientation.read(from: FileSource(photo.original)).number == 6)
    let bytes = try photo.rendition(Self.cut).bytes()
    #expect(size(ofJPEG: bytes) == [48, 72])
    let start = try #require(bytes.firstRange(of: Array("Exif\0\0".utf8))?.upperBound)
    #expect(
      Array(bytes[start..<(start + exif.count)]) == Self.exif(orientation: 1, width: 48, height: 72, small: false))
    #expect(bytes.firstRange(of: Array("<x tiff:Orientation=\"1\" note=\"kept\"/>".utf8)) != nil)
    #expect(bytes.firstRange(of: Self.profile) != nil)
  }

  /// A profile is copied unchanged if it has the signature of a profile.
  private static let profile = [UInt8](repeating: 0, count: 36) + Array("acsp".utf8) + (0..<200).map { UInt8($0) }

  /// Orientation and a maker note; width in the Exif directory; a thumbnail of four bytes.
  private static func exif(orientation: UInt8, width: UInt8 = 96, height: UInt8 = 64, small: Bool = true) -> [UInt8] {
    func entry(_ tag: [UInt8], _ kind: UInt8, _ count: UInt8, _ value: [UInt8]) -> [UInt8] {
      tag + [kind, 0, count, 0, 0, 0] + value + [UInt8](repeating: 0, count: 4 - value.count)
    }
    let main =
      [2, 0] + entry([0x12, 0x01], 3, 1, [orientation]) + entry([0x69, 0x87], 4, 1, [38])
      + [small ? 68 : 0, 0, 0, 0]
    let inner = [2, 0] + entry([0x02, 0xA0], 3, 1, [width]) + entry([0x03, 0xA0], 4, 1, [height]) + [0, 0, 0, 0]
    let second = [2, 0] + entry([0x01, 0x02], 4, 1, [98]) + entry([0x02, 0x02], 4, 1, [4]) + [0, 0, 0, 0]
    return Array("II*\0".utf8) + [8, 0, 0, 0] + main + inner + second
      + (small ? [1, 2, 3, 4] : [0, 0, 0, 0]) + Array("a maker's words".utf8)
  }
}
