import BlobMedia
import Foundation
import Testing

/// The content of sidecars in the notations of several programs.
@Suite struct SidecarTests {
  private static func packet(_ attributes: String, _ elements: String = "") -> String {
    """
    <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?>
    <x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="Adobe XMP Core 5.6-c140 79.160451, 2017/05/06-01:08:21">
     <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
      <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
        xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmlns:darktable="http://darktable.sf.net/"
        xmlns:aas="http://ns.apple.com/adjustment-settings/1.0/"
        xmlns:crs="http://ns.adobe.com/camera-raw-settings/1.0/" \(attributes)>\(elements)</rdf:Description>
     </rdf:RDF>
    </x:xmpmeta>
    <?xpacket end="w"?>
    """
  }

  private static let crop =
    #"crs:HasCrop="True" crs:CropTop="0.1" crs:CropLeft="0.2" crs:CropBottom="0.9" crs:CropRight="0.8" crs:CropAngle="-1.5""#
  private static let cropped = PhotoEdit(.corners(left: 0.2, top: 0.1, right: 0.8, bottom: 0.9, angle: -1.5))

  private func read(_ text: String, _ ending: String = "JPG") -> Sidecar {
    Sidecar(Array(text.utf8), besidePhoto: ending)
  }

  private func refusal(_ sidecar: Sidecar) -> String? {
    if case .refused(let refusal) = sidecar { refusal.description } else { nil }
  }

  @Test func aCropThatIsAllIsAnEdit() {
    #expect(read(Self.packet(Self.crop)) == .edit(Self.cropped))
    let elements = Self.crop.split(separator: " ").map { pair in
      let parts = pair.split(separator: "=")
      return "<\(parts[0])>\(parts[1].dropFirst().dropLast())</\(parts[0])>\n"
    }.joined()
    #expect(read(Self.packet("", elements)) == .edit(Self.cropped))
    let turned = read(Self.packet(Self.crop + #" tiff:Orientation="6""#))
    #expect(turned == .edit(PhotoEdit(Self.cropped.frame, orientation: PhotoOrientation(6))))
  }

  /// Programs that write elements for people put white space around the values.
  @Test func whiteSpaceAroundAValueIsIgnored() {
    let elements = Self.crop.split(separator: " ").map { pair in
      let parts = pair.split(separator: "=")
      return "<\(parts[0])>\n   \(parts[1].dropFirst().dropLast())\n </\(parts[0])>\n"
    }.joined()
    #expect(read(Self.packet("", elements)) == .edit(Self.cropped))
    #expect(read(Self.packet(Self.crop.replacing("True", with: "1"))) == .edit(Self.cropped))
  }

  /// Without its angle, the crop would be another picture; without its flag, none.
  @Test(arguments: [
    ("CropAngle", "1,5"), ("CropAngle", "5deg"), ("CropAngle", "abc"), ("CropAngle", "nan"), ("CropAngle", "0x10"),
    ("CropAngle", "1e400"), ("CropAngle", "0.0.1"), ("HasCrop", "yes"), ("HasCrop", "2"), ("AlreadyApplied", "maybe"),
  ])
  func anInvalidSidecarValueIsRefusedByName(_ name: String, _ value: String) throws {
    let others = Self.crop.split(separator: " ").filter { !$0.hasPrefix("crs:\(name)=") }.joined(separator: " ")
    let reason = try #require(refusal(read(Self.packet("\(others) crs:\(name)=\"\(value)\""))))
    #expect(reason.contains("crs:\(name)"), "\(reason)")
  }

  /// All fields that Lightroom writes for a photo of which only the frame was changed.
  @Test func neutralSettingsAreNoEdit() {
    let neutral = """
      crs:Version="9.12" crs:ProcessVersion="6.7" crs:WhiteBalance="As Shot" crs:Temperature="5150" crs:Tint="+6"
      crs:IncrementalTemperature="0" crs:Exposure2012="0.00" crs:Contrast2012="0" crs:Saturation="0"
      crs:Sharpness="0" crs:SharpenRadius="+1.0" crs:SharpenDetail="25" crs:SharpenEdgeMasking="0"
      crs:LuminanceSmoothing="0" crs:ColorNoiseReduction="0" crs:VignetteAmount="0" crs:ParametricMidtoneSplit="50"
      crs:SplitToningShadowHue="0" crs:SplitToningBalance="0" crs:PostCropVignetteAmount="0" crs:GrainAmount="0"
      crs:LensProfileEnable="0" crs:LensManualDistortionAmount="0" crs:PerspectiveScale="100"
      crs:PerspectiveUpright="0" crs:UprightVersion="151388160" crs:AutoLateralCA="0" crs:Dehaze="0"
      crs:ConvertToGrayscale="False" crs:ToneCurveName="Linear" crs:ToneCurveName2012="Linear"
      crs:CameraProfile="Embedded" crs:LensProfileSetup="LensDefaults" crs:HasSettings="True" crs:AlreadyApplied="False"
      """
    let curve =
      "<crs:ToneCurvePV2012>\n <rdf:Seq>\n <rdf:li>0, 0</rdf:li>\n <rdf:li>255, 255</rdf:li>\n</rdf:Seq></crs:ToneCurvePV2012>"
    #expect(read(Self.packet(neutral + " " + Self.crop, curve)) == .edit(Self.cropped))
    #expect(read(Self.packet(neutral, curve)) == .nothing)
  }

  @Test(arguments: [
    #"crs:Exposure2012="+0.35""#, #"crs:WhiteBalance="Custom""#, #"crs:ConvertToGrayscale="True""#,
    #"crs:Sharpness="25""#,
    #"crs:CameraProfile="Adobe Standard""#, #"crs:PerspectiveScale="98""#, #"crs:SomethingNew="on""#,
    #"crs:Temperature="6000""#, #"darktable:history="x""#, #"tiff:Orientation="9""#, #"crs:CropWidth="10""#,
    #"aas:Vibrance="0.2""#, #"aas:AffineA="1""#,
  ])
  func unknownEditsAreRefused(_ property: String) throws {
    let reason = try #require(refusal(read(Self.packet(Self.crop + " " + property))))
    let name = property.split(separator: "=")[0]
    #expect(reason.contains(name) || reason.contains("darktable"), "\(reason)")
  }

  @Test func listsAreRefusedUnlessTheyAreEmptyOrStraight() {
    let bent =
      "<crs:ToneCurvePV2012><rdf:Seq><rdf:li>0, 10</rdf:li><rdf:li>255, 255</rdf:li></rdf:Seq></crs:ToneCurvePV2012>"
    let masks =
      "<crs:MaskGroupBasedCorrections><rdf:Seq><rdf:li crs:What=\"Correction\"/></rdf:Seq></crs:MaskGroupBasedCorrections>"
    let none = "<crs:RetouchInfo><rdf:Seq/></crs:RetouchInfo>"
    #expect(refusal(read(Self.packet(Self.crop, bent))) == "crs:ToneCurvePV2012 is a list")
    #expect(refusal(read(Self.packet(Self.crop, masks))) == "crs:MaskGroupBasedCorrections is a list")
    #expect(read(Self.packet(Self.crop, none)) == .edit(Self.cropped))
  }

  @Test func aSidecarWithoutPendingChangesIsNoEdit() {
    #expect(read(Self.packet(#"crs:AlreadyApplied="True" crs:Exposure2012="+1" "# + Self.crop)) == .nothing)
    #expect(read(Self.packet(#"xmp:Rating="5""#)) == .nothing)
    #expect(read(Self.packet(Self.crop.replacing("\"True\"", with: "\"False\""))) == .nothing)
    #expect(
      read(Self.packet(#"crs:HasCrop="True" crs:CropTop="0" crs:CropLeft="0" crs:CropBottom="1" crs:CropRight="1""#))
        == .nothing)
  }

  @Test func aPacketMaySayWhoseItIs() {
    let raw = Self.packet(#"photoshop:SidecarForExtension="CR2" "# + Self.crop)
    #expect(read(raw, "JPG") == .nothing)
    #expect(read(raw, "cr2") == .edit(Self.cropped))
  }

  @Test func iOS7SaysItInPixels() throws {
    let text =
      #"aas:AffineA="1" aas:AffineB="0" aas:AffineC="0" aas:AffineD="1" aas:AffineX="0" aas:AffineY="0" aas:CropX="12" aas:CropY="34" aas:CropW="2000" aas:CropH="1500""#
    let wanted = PhotoEdit(.pixels(transform: .init(), crop: .init(x: 12, y: 34, width: 2000, height: 1500)))
    #expect(read(Self.packet(text)) == .edit(wanted))
    let list = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0"><dict>
        <key>adjustmentFormatIdentifier</key><string>com.apple.photo</string>
        <key>adjustmentFormatVersion</key><string>1.4</string>
        <key>adjustmentData</key><data>
        %
        </data>
      </dict></plist>
      """
    let data = Data(Self.packet(text).utf8).base64EncodedString(options: .lineLength64Characters)
    #expect(read(list.replacing("%", with: data)) == .edit(wanted))
    let opaque = read(list.replacing("%", with: "bVA9T8MwEP0r6OYMdpKmSTZAQmKAgQEGhosvxdSxI9uNKqr8d84pA2LxnXXv"))
    #expect(refusal(opaque) == "its adjustments are opaque (com.apple.photo 1.4)")
    #expect(refusal(read("bplist00\u{1}")) == "its adjustments are opaque")
  }

  @Test func brokenSidecarsAreRefusedAndNotFollowed() {
    let whole = Self.packet(Self.crop)
    for count in stride(from: 1, to: whole.utf8.count - 30, by: 7) {
      let cut = Sidecar(Array(whole.utf8.prefix(count)), besidePhoto: "JPG")
      #expect(cut == .refused(RenditionRefusal("its sidecar cannot be read")), "\(count)")
    }
    let entities = "<!DOCTYPE x [<!ENTITY a 'b'>]>" + whole
    let deep = String(repeating: "<a>", count: 5000) + String(repeating: "</a>", count: 5000)
    for text in [entities, deep, "", "<a/><b/>", "<a:b/>", "<a b='&nope;'/>", "<a>\u{0}</b>"] {
      #expect(refusal(read(text)) == "its sidecar cannot be read")
    }
    #expect(read("<html/>") == .nothing)
    #expect(refusal(read(Self.packet(Self.crop.replacing("0.9", with: "nan")))) != nil)
  }

  /// The time must grow linearly with the size. If it were quadratic, 1 MiB would take minutes.
  @Test(arguments: [
    "<crs:Temperature>5000</crs:Temperature>", "<crs:Tint>5</crs:Tint>", "<aas:AffineA>1</aas:AffineA>",
  ])
  func aPacketOfManyRepeatedFieldsIsReadInLinearTime(_ field: String) {
    let fields = String(repeating: field, count: (190 << 10) / field.utf8.count)
    let text = Self.packet("", fields + "<crs:WhiteBalance>As Shot</crs:WhiteBalance>")
    let before = processorTime()
    _ = read(text)
    #expect(processorTime() - before < .seconds(3))
  }

  @Test func aPacketThatIsLargerOrHasMoreFieldsThanAnyProgramWritesIsNotRead() {
    let attributes = (0..<60_000).map { #"a\#($0)="""# }.joined(separator: " ")
    #expect(refusal(read(Self.packet(attributes))) == "its sidecar cannot be read")
    #expect(refusal(read(Self.packet("", String(repeating: " ", count: 1 << 20)))) == "its sidecar cannot be read")
    let deep = String(repeating: "<crs:a>", count: 100_000) + String(repeating: "</crs:a>", count: 100_000)
    #expect(refusal(read(Self.packet("", deep))) == "its sidecar cannot be read")
  }

  /// Programs that use the first value, and programs that use the last one, would crop differently.
  @Test func aFieldThatIsThereTwiceWithTwoValuesIsRefused() {
    let twice = "<crs:CropTop>0.1</crs:CropTop><crs:CropTop>0.2</crs:CropTop>"
    let others = Self.crop.replacingOccurrences(of: #"crs:CropTop="0.1" "#, with: "")
    #expect(refusal(read(Self.packet(others, twice)))?.contains("CropTop is there twice") == true)
    let same = "<crs:CropTop>0.1</crs:CropTop><crs:CropTop>0.1</crs:CropTop>"
    #expect(read(Self.packet(others, same)) == .edit(Self.cropped))
    #expect(refusal(read(Self.packet(Self.crop + #" crs:CropTop="0.1""#))) == "its sidecar cannot be read")
  }
}

/// CPU time of this thread, independent of other processes.
private func processorTime() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
