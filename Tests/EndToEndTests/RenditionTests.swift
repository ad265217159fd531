import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Edits that are rendered during a push: real photographs, compared with the result of ImageMagick.
  @Suite(.serialized) struct RenditionTests {
    let scratch = try! Scratch()

    /// The XMP file that Camera Raw writes beside a photo that was only cropped, straightened and rotated.
    func packet(
      _ corners: (left: Double, top: Double, right: Double, bottom: Double), angle: Double = 0, orientation: Int = 1,
      exposure: String = "0.00"
    ) -> String {
      """
      <x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 5.6-c011 79.156380, 2014/05/21-23:38:37">
       <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
        <rdf:Description rdf:about="" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
         xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" tiff:Orientation="\(orientation)" crs:Version="9.1"
         crs:ProcessVersion="6.7" crs:WhiteBalance="As Shot" crs:Exposure2012="\(exposure)" crs:Sharpness="0"
         crs:SharpenRadius="+1.0" crs:HasCrop="True" crs:CropTop="\(corners.top)" crs:CropLeft="\(corners.left)"
         crs:CropBottom="\(corners.bottom)" crs:CropRight="\(corners.right)" crs:CropAngle="\(angle)"
         crs:HasSettings="True" crs:AlreadyApplied="False"/>
       </rdf:RDF>
      </x:xmpmeta>
      """
    }

    let helper = URL(fileURLWithPath: Tool.fullbore).deletingLastPathComponent()
      .appendingPathComponent("fullbore-media").path

    static let corners = (left: 0.1, top: 0.2, right: 0.8, bottom: 0.9)

    func photograph(_ peer: Peer, _ name: String, as place: String) throws {
      let folder = try #require(peer.path, peer.reason)
      let target = URL(fileURLWithPath: scratch.path(place))
      try FileManager.default.createDirectory(
        at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
      try FileManager.default.copyItem(atPath: "\(folder)/\(name)", toPath: target.path)
      try scratch.age(place)
    }

    func write(_ text: String, _ place: String) throws {
      try text.write(toFile: scratch.path(place), atomically: true, encoding: .utf8)
      try scratch.age(place)
    }

    /// Runs ImageMagick and returns the bytes of an uncompressed picture.
    func pixels(_ words: [String], _ name: String) async throws -> [UInt8] {
      let program = try #require(Peer.imagemagick.path, Peer.imagemagick.reason)
      let file = scratch.path(name)
      let convert = try Command(program, words + ["-depth", "8", "rgb:\(file)"], in: scratch)
      try #require(try await convert.wait() == .exited(0), "\(convert.errors)")
      return Array(try Data(contentsOf: URL(fileURLWithPath: file)))
    }

    /// The mean difference of two pictures, in 255ths, over all colors of all pixels; nil if their sizes differ.
    func difference(_ one: [UInt8], _ other: [UInt8]) -> Double? {
      guard one.count == other.count, !one.isEmpty else { return nil }
      let sum = zip(one, other).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
      return Double(sum) / Double(one.count)
    }

    /// The result equals the reference, and differs from the reference shifted by a pixel.
    @Test(
      .needs(.photographs, .imagemagick),
      arguments: (1...8).map { ("rocket.jpg", 640, 427, $0) }
        + [("retina.jpg", 1411, 1411, 6), ("hubble_deep_field.jpg", 1000, 872, 3)])
    func cutsAndTurnsArePixelForPixel(_ name: String, _ width: Int, _ height: Int, _ orientation: Int) async throws {
      try photograph(.photographs, name, as: "card/DCIM/IMG_0001.JPG")
      try write(packet(Self.corners, orientation: orientation), "card/DCIM/IMG_0001.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--edits", "current", scratch.path("card/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["DCIM/IMG_0001.xmp", "DCIM/IMG_E0001.JPG"])

      func place(_ share: Double, of size: Int) -> Int { Int((share * Double(size)).rounded()) }
      let (left, top) = (place(Self.corners.left, of: width), place(Self.corners.top, of: height))
      let (right, bottom) = (place(Self.corners.right, of: width), place(Self.corners.bottom, of: height))
      let turns = [
        [], ["-flop"], ["-rotate", "180"], ["-flip"], ["-transpose"], ["-rotate", "90"], ["-transverse"],
        ["-rotate", "270"],
      ]
      func reference(_ moved: Int, _ name: String) async throws -> [UInt8] {
        let area = "\(right - left)x\(bottom - top)+\(left + moved)+\(top)"
        let original = scratch.path("card/DCIM/IMG_0001.JPG")
        return try await pixels([original, "-crop", area, "+repage"] + turns[orientation - 1], name)
      }
      let arrived = try await pixels([server.folder.path + "/DCIM/IMG_E0001.JPG"], "arrived")
      let exact = try #require(difference(arrived, try await reference(0, "exact")))
      let moved = try #require(difference(arrived, try await reference(1, "moved")))
      #expect(exact < 3 && exact < moved / 1.5, "\(exact), and \(moved) where it is moved")
    }

    /// The two programs interpolate differently between pixels, but with a shift of half a pixel the difference is
    /// larger.
    @Test(.needs(.photographs, .imagemagick), arguments: [3.0, -1.25])
    func straighteningIsExactToAPartOfAPixel(_ angle: Double) async throws {
      try photograph(.photographs, "retina.jpg", as: "card/DCIM/IMG_0001.JPG")
      try write(packet((0.2, 0.2, 0.8, 0.8), angle: angle), "card/DCIM/IMG_0001.JPG.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--edits", "current", scratch.path("card/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let turn = angle * .pi / 180
      let side = 0.6 * 1411
      let (width, height) = ((side * (cos(turn) + sin(turn))).rounded(), (side * (cos(turn) - sin(turn))).rounded())
      func reference(_ x: Double, _ y: Double, _ name: String) async throws -> [UInt8] {
        let words = [
          scratch.path("card/DCIM/IMG_0001.JPG"), "-virtual-pixel", "edge", "-set", "option:distort:viewport",
          "\(Int(width))x\(Int(height))+0+0", "-distort", "SRT",
          "705.5,705.5 1 \(-angle) \(width / 2 + x),\(height / 2 + y)", "+repage",
        ]
        return try await pixels(words, name)
      }
      let arrived = try await pixels([server.folder.path + "/DCIM/IMG_E0001.JPG"], "arrived")
      let exact = try #require(difference(arrived, try await reference(0, 0, "exact")))
      #expect(exact < 1)
      for (x, y) in [(0.5, 0.0), (-0.5, 0.0), (0.0, 0.5), (0.0, -0.5)] {
        let moved = try #require(difference(arrived, try await reference(x, y, "moved")))
        #expect(exact * 1.1 < moved, "\(exact), and \(moved) by \(x), \(y)")
      }
    }

    /// Photographs of an iPhone, landscape and portrait; another program decodes them for the reference. Corners refer
    /// to the stored picture: in portrait, its left side is at the top.
    @Test(
      .needs(.heifPhotographs, .heifConvert, .imagemagick),
      arguments: [("pug.heic", 1, "2823x2117+403+605"), ("arrow.heic", 6, "2117x2823+302+403")])
    func heicIsRenderedToo(_ name: String, _ orientation: Int, _ area: String) async throws {
      try photograph(.heifPhotographs, name, as: "card/DCIM/IMG_0001.HEIC")
      try write(packet(Self.corners, orientation: orientation), "card/DCIM/IMG_0001.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--edits", "current", scratch.path("card/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      #expect(server.folder.files().keys.sorted() == ["DCIM/IMG_0001.xmp", "DCIM/IMG_E0001.JPG"])
      let program = try #require(Peer.heifConvert.path, Peer.heifConvert.reason)
      let decode = try Command(
        program, [scratch.path("card/DCIM/IMG_0001.HEIC"), scratch.path("whole.png")], in: scratch)
      try #require(try await decode.wait() == .exited(0), "\(decode.errors)")
      let arrived = try await pixels([server.folder.path + "/DCIM/IMG_E0001.JPG"], "arrived")
      let reference = try await pixels([scratch.path("whole.png"), "-crop", area, "+repage"], "exact")
      let exact = try #require(difference(arrived, reference), "\(arrived.count / 3) pixels arrived")
      #expect(exact < 2)
    }

    @Test(.needs(.photographs)) func aPhotoThatCannotBeRenderedExactlyIsSentAsTheOriginal() async throws {
      for name in ["IMG_0001.JPG", "IMG_0002.JPG", "IMG_0003.CR2", "IMG_0004.JPG", "IMG_0005.JPG", "IMG_0005.jpeg"] {
        try photograph(.photographs, "rocket.jpg", as: "card/DCIM/\(name)")
      }
      try write(packet(Self.corners, exposure: "+0.35"), "card/DCIM/IMG_0001.xmp")
      try write("bplist00 of a newer iPhone", "card/DCIM/IMG_0002.AAE")
      try write(packet(Self.corners), "card/DCIM/IMG_0003.xmp")
      try write(packet((0, 0, 1, 1)), "card/DCIM/IMG_0004.xmp")
      try write(packet(Self.corners), "card/DCIM/IMG_0005.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore("push", "--edits", "current", scratch.path("card/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      Folder(scratch.path("card")).expectSame(as: server.folder)
      let said = push.errors.split(separator: "\n")
      #expect(said.count == 5, "\(push.errors)")
      for (name, reason) in [
        ("IMG_0001.JPG", "IMG_0001.xmp: crs:Exposure2012 is '+0.35'"),
        ("IMG_0002.JPG", "IMG_0002.AAE: its adjustments are opaque"), ("IMG_0003.CR2", "a RAW file is developed"),
        ("IMG_0005.JPG", "it may be that of IMG_0005.jpeg"), ("IMG_0005.jpeg", "it may be that of IMG_0005.JPG"),
      ] {
        #expect(
          said.contains {
            $0.contains("\(name): its edit is not rendered, the original is sent") && $0.contains(reason)
          },
          "\(push.errors)")
      }
    }

    @Test(.needs(.photographs)) func withoutTheHelperTheOriginalGoes() async throws {
      try photograph(.photographs, "rocket.jpg", as: "card/DCIM/IMG_0001.JPG")
      try write(packet(Self.corners), "card/DCIM/IMG_0001.xmp")
      let alone = scratch.path("alone/fullbore")
      try scratch.folder("alone")
      try FileManager.default.copyItem(atPath: Tool.fullbore, toPath: alone)
      let server = try await ServeProcess.start(in: scratch)
      let push = try Command(
        alone, ["push", "--edits", "current", scratch.path("card/"), server.url], in: scratch,
        environment: ["PATH": "/bin:/usr/bin"])
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      #expect(push.errors.contains("fullbore-media, which renders edits, is neither beside fullbore nor in PATH"))
      Folder(scratch.path("card")).expectSame(as: server.folder)
    }

    @Test(.needs(.photographs)) func bothGoWhenAskedFor() async throws {
      try photograph(.photographs, "rocket.jpg", as: "photos/sea.jpg")
      try write(packet(Self.corners), "photos/sea.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--edits", "both", "--edit-quality", "60", scratch.path("photos/"), server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let small = server.folder.files()["sea-edited.jpg"] ?? 0
      #expect(server.folder.files().keys.sorted() == ["sea-edited.jpg", "sea.jpg", "sea.xmp"])
      let again = try await fullbore(
        "push", "--edits", "current", "--overwrite", scratch.path("photos/"), server.url, in: scratch)
      #expect(again.end == .exited(0), "\(again.command.errors)")
      #expect(server.folder.files()["sea-edited.jpg"]! > small * 3 / 2 && small > 1000)
    }

    @Test(.needs(.photographs), arguments: ["put+", "form+", "tus+", "resumable+"])
    func aRenditionIsSentByEveryProtocol(_ uploadProtocol: String) async throws {
      try photograph(.photographs, "rocket.jpg", as: "card/DCIM/IMG_0001.JPG")
      try write(packet(Self.corners), "card/DCIM/IMG_0001.xmp")
      let server = try await ServeProcess.start(in: scratch)
      let (end, push) = try await fullbore(
        "push", "--edits", "current", scratch.path("card/"), uploadProtocol + server.url, in: scratch)
      #expect(end == .exited(0), "\(push.output)\(push.errors)")
      let line = "\"$0\" render --corners=0.1,0.2,0.8,0.9,0.0 <\"$1\" | cat >\"$2\""
      let words = ["-c", line, helper, scratch.path("card/DCIM/IMG_0001.JPG"), scratch.path("direct.jpg")]
      #expect(try await Command("bash", words, in: scratch).wait() == .exited(0))
      // A form contains no folders.
      let name = try #require(server.folder.files().keys.first { $0.hasSuffix("IMG_E0001.JPG") })
      let arrived = FileManager.default.contentsEqual(
        atPath: "\(server.folder.path)/\(name)", andPath: scratch.path("direct.jpg"))
      #expect(arrived)
      // A form has no place that could be compared.
      if uploadProtocol == "form+" { return }
      let (checked, check) = try await fullbore(
        "check", "--edits", "current", scratch.path("card/"), uploadProtocol + server.url, in: scratch)
      #expect(checked == .exited(0), "\(check.output)\(check.errors)")
    }

    /// The watch reports this once for each file, however often the file changes.
    @Test(.needs(.photographs)) func aWatchSendsOriginalsAndReportsIt() async throws {
      try photograph(.photographs, "rocket.jpg", as: "gallery/DCIM/IMG_0001.JPG")
      try write(packet(Self.corners), "gallery/DCIM/IMG_0001.xmp")
      try photograph(.photographs, "retina.jpg", as: "gallery/DCIM/IMG_0002.JPG")
      let server = try await ServeProcess.start(in: scratch)
      let watch = try await WatchProcess.start(to: server.url, in: scratch, "--overwrite", "--edits", "current")
      try await watch.expectSame(at: server.folder)
      let said = "IMG_0001.JPG: its edit is not rendered, the original is sent"
      #expect(watch.command.errors.contains(said), "\(watch.command.errors)")

      // The same photo with other bytes, and a second one that arrives with its edit.
      try write(packet(Self.corners), "gallery/DCIM/IMG_0003.xmp")
      try photograph(.photographs, "rocket.jpg", as: "gallery/DCIM/IMG_0003.JPG")
      let photo = scratch.path("gallery/DCIM/IMG_0001.JPG")
      try FileManager.default.removeItem(atPath: photo)
      try photograph(.photographs, "hubble_deep_field.jpg", as: "gallery/DCIM/IMG_0001.JPG")
      try await watch.expectSame(at: server.folder)
      #expect(try await watch.stop() == .exited(130))
      let words = watch.command.errors.split(separator: "\n").filter { $0.contains("not rendered") }
      #expect(words.count == 2 && words.allSatisfy { $0.contains("a watch renders none") }, "\(words)")
      #expect(words.contains { $0.contains("IMG_0003.JPG") })
      #expect(!server.folder.files().keys.contains { $0.contains("IMG_E") })
      #expect(watch.command.output.contains("6 files sent"), "\(watch.command.output)")
    }

    static func peakMemory(ofChildrenOf pid: pid_t) -> Int {
      let children = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
      return children.split(separator: " ").compactMap { child -> Int? in
        guard let status = try? String(contentsOfFile: "/proc/\(child)/status", encoding: .utf8),
          status.contains("fullbore-media"),
          let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return nil }
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
      }.max() ?? 0
    }
  }
}
