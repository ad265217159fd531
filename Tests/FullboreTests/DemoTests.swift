import Blobs
import Platform
import Testing

@testable import fullbore

@Suite struct DemoTests {
  let scratch = Scratch()

  @Test(arguments: [(1, 1), (160, 110), (300, 73), (257, 85)])
  func imagesAreValidPNG(_ width: Int, _ height: Int) throws {
    let png = try PNGWriter(try FileWriter(scratch.path.appending("a.png")), width: width, height: height)
    var painting = Painting(width: width, height: height, seed: 3)
    var row = [UInt8](repeating: 0, count: 3 * width)
    var rows: [UInt8] = []
    for y in 0..<height {
      painting.paint(y, into: &row)
      try png.write(row: row)
      rows += [0] + row
    }
    try png.finish()
    let image = try #require(PNGReader(scratch.content(of: "a.png")))
    #expect(image.width == width && image.height == height)
    #expect(image.filteredRows == rows)
  }

  @Test func checksumsAreTheKnownOnes() {
    var crc = CRC32()
    crc.update(Array("123456789".utf8))
    #expect(crc.value == 0xCBF4_3926)
    var adler = Adler32()
    adler.update(Array("Wikipedia".utf8))
    #expect(adler.value == 0x11E6_0398)
    var long = Adler32()
    long.update([UInt8](repeating: 255, count: 1_000_000))
    #expect(long.value == 0x3843_E1BE)
  }

  @Test func theGalleryIsTheSameForTheSameSeedAndTheFilmTakesNoRoom() throws {
    for name in ["one", "two"] as [BytePath] { scratch.folder(name) }
    let gallery = try DemoGallery(in: scratch.path.appending("one"), images: 9, videoSize: 300 << 20)
    #expect(Set(gallery.images).count == 9)
    #expect(gallery.images.contains { !$0.bytes.allSatisfy { $0 < 0x80 } })
    #expect(gallery.videoSize == 300 << 20)
    #expect(gallery.videoDiskSize <= (300 << 20) / 100)
    let again = try DemoGallery(in: scratch.path.appending("two"), images: 9, videoSize: 1 << 20)
    for (name, other) in zip(gallery.images, again.images) {
      let bytes = scratch.content(of: BytePath("one").appending(name))
      #expect(bytes.count > 50 << 10 && PNGReader(bytes) != nil)
      #expect(scratch.content(of: BytePath("two").appending(other)) == bytes)
    }
    #expect(try StampedVideo.check(scratch.path.appending("one").appending(gallery.video)) == 299)
  }

  @Test func aFilmBeginsWithItsBoxes() throws {
    try StampedVideo.write(scratch.path.appending("film"), size: (2 << 20) + 100)
    let bytes = scratch.content(of: "film")
    #expect(bytes.count == (2 << 20) + 100)
    #expect(Array(bytes[4..<12]) == Array("ftypisom".utf8))
    #expect(Array(bytes[24..<32]) == [0, 0, 0, 1] + Array("mdat".utf8))
    #expect(Array(bytes[32..<40]) == bigEndian(Int64(bytes.count - 24)))
    #expect(Array(bytes[(1 << 20)..<(1 << 20) + 16]) == StampedVideo.stamp(at: 1 << 20))
  }

  @Test func aMisplacedBlockShows() throws {
    let path = scratch.path.appending("film")
    try StampedVideo.write(path, size: 4 << 20)
    #expect(try StampedVideo.check(path) == 3)
    let descriptor = path.withCString { fopen($0, "r+") }
    fseek(descriptor, 2 << 20, SEEK_SET)
    fwrite(StampedVideo.stamp(at: 1 << 20), 1, 16, descriptor)
    fclose(descriptor)
    #expect(throws: DemoError.self) { try StampedVideo.check(path) }
  }

  @Test func theFirstOtherByteIsFound() throws {
    var bytes = [UInt8](repeating: 7, count: (1 << 20) + 5)
    let a = scratch.file("a", bytes)
    #expect(try DemoVerify().compare(a, scratch.file("b", bytes)) == .equal(Int64(bytes.count)))
    bytes[(1 << 20) + 2] = 8
    #expect(try DemoVerify().compare(a, scratch.file("c", bytes)) == .different(at: (1 << 20) + 2))
    let shorter = scratch.file("d", Array(bytes.prefix(1 << 20)))
    #expect(try DemoVerify().compare(a, shorter) == .different(at: 1 << 20))
    #expect(try DemoVerify().compare(scratch.file("e", []), scratch.file("f", [])) == .equal(0))
    #expect(throws: DemoError.self) { try DemoVerify { true }.compare(a, a) }
  }

  @Test func aTemporaryFileIsSeenEvenWhenItIsGoneAgain() throws {
    let watch = try FolderWatch(scratch.path)
    #expect(watch.newNames() == [])
    let path = scratch.file("temporary")
    _ = path.withCString { unlink($0) }
    #expect(watch.newNames() == ["temporary"])
  }

  @Test func aChildTellsItsStatusOutputAndEnd() throws {
    let child = try ChildProcess(
      "/bin/sh", ["-c", "echo \"$WORD\"; echo two; exit 7"], environment: ["WORD": "one"], output: .piped)
    var lines = LineReader(child.output)
    #expect(lines.next() == "one" && lines.next() == "two" && lines.next() == nil)
    let end = child.wait()
    #expect(end.status == 7 && end.signal == nil && end.peakMemory > 0)
    #expect(child.wait() == end)
    let sleeper = try ChildProcess("/bin/sleep", ["100"])
    sleeper.send(SIGKILL)
    #expect(sleeper.wait().signal == SIGKILL)
    sleeper.send(SIGKILL)
    #expect(throws: DemoError.self) { try ChildProcess("/nonexistent", []) }
  }

  @Test func aStageRemovesWhatWasMade() throws {
    let stage = try DemoStage(in: scratch.path)
    _ = try stage.makeFolder("a")
    try StampedVideo.write(stage.folder.appending("a/film"), size: 2 << 20)
    _ = "/etc".withCString { target in stage.folder.appending("link").withCString { symlink(target, $0) } }
    stage.interrupt()
    #expect(throws: DemoError.self) { try stage.start([]) }
    stage.clear()
    #expect(stage.folder.withCString { access($0, F_OK) } != 0)
    #expect(access("/etc/passwd", F_OK) == 0)
  }
}

/// Reads back what `PNGWriter` writes, and holds every checksum against its bytes.
private struct PNGReader {
  var width = 0
  var height = 0
  var filteredRows: [UInt8] = []

  init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: [0x89] + Array("PNG\r\n".utf8) + [0x1A, 0x0A]) || bytes.prefix(8).last == 0x0A else {
      return nil
    }
    var rest = bytes.dropFirst(8)
    var stream: [UInt8] = []
    var types: [String] = []
    while !rest.isEmpty {
      let count = Int(Self.number(rest.prefix(4)))
      guard rest.count >= count + 12 else { return nil }
      let body = Array(rest.dropFirst(4).prefix(count + 4))
      var crc = CRC32()
      crc.update(body)
      guard Self.number(rest.dropFirst(count + 8).prefix(4)) == crc.value else { return nil }
      let type = String(decoding: body.prefix(4), as: UTF8.self)
      types.append(type)
      if type == "IHDR" {
        (width, height) = (Int(Self.number(body[4..<8])), Int(Self.number(body[8..<12])))
        guard Array(body[12...]) == [8, 2, 0, 0, 0] else { return nil }
      }
      if type == "IDAT" { stream += body.dropFirst(4) }
      rest = rest.dropFirst(count + 12)
    }
    guard types.first == "IHDR", types.last == "IEND", Self.number(stream.prefix(2)) % 31 == 0 else { return nil }
    guard let rows = Self.inflateStored(stream.dropFirst(2).dropLast(4)) else { return nil }
    var adler = Adler32()
    adler.update(rows)
    guard adler.value == Self.number(stream.suffix(4)), rows.count == height * (1 + 3 * width) else { return nil }
    filteredRows = rows
  }

  private static func inflateStored(_ stream: ArraySlice<UInt8>) -> [UInt8]? {
    var (rest, result) = (stream, [UInt8]())
    while rest.count >= 5 {
      let head = Array(rest.prefix(5))
      let count = Int(head[1]) | Int(head[2]) << 8
      guard head[0] <= 1, head[1] == ~head[3], head[2] == ~head[4], rest.count >= count + 5 else { return nil }
      result += rest.dropFirst(5).prefix(count)
      rest = rest.dropFirst(count + 5)
      if head[0] == 1 { return rest.isEmpty ? result : nil }
    }
    return nil
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }
}
