import Blobs

extension XMPPacket {
  /// The crop of Lightroom and Camera Raw. Throws if the packet contains any other edit, or may contain one.
  func cameraRawFrame() throws(RenditionRefusal) -> PhotoEdit.Frame {
    let found = all(in: Space.cameraRaw)
    if found.isEmpty { return .whole }
    // It marks a rendered file that still contains its settings.
    if try flag("AlreadyApplied", found) { return .whole }
    for (name, value) in found where !isHarmless(name, value) {
      throw RenditionRefusal("crs:\(name.prefix(60)) is \(value.shown)")
    }
    guard try flag("HasCrop", found) else { return .whole }
    let names = ["CropLeft", "CropTop", "CropRight", "CropBottom"]
    let corners = names.compactMap { number($0, in: Space.cameraRaw) }
    var angle = 0.0
    if let given = found.first(where: { $0.name == "CropAngle" })?.value, !given.isEmpty {
      guard let number = number("CropAngle", in: Space.cameraRaw) else {
        throw RenditionRefusal("crs:CropAngle is \(given.shown)")
      }
      angle = number
    }
    guard corners.count == 4, corners.allSatisfy((0...1).contains), corners[0] < corners[2], corners[1] < corners[3],
      (-45...45).contains(angle)
    else { throw RenditionRefusal("crs:HasCrop is 'True', and its corners make no rectangle") }
    if corners == [0, 0, 1, 1], angle == 0 { return .whole }
    return .corners(left: corners[0], top: corners[1], right: corners[2], bottom: corners[3], angle: angle)
  }

  /// The value of a property that is true or false; false also if it is not there. Throws if it is neither.
  private func flag(_ name: String, _ found: [(name: String, value: Value)]) throws(RenditionRefusal) -> Bool {
    guard let value = found.first(where: { $0.name == name })?.value, !value.isEmpty else { return false }
    switch text(name, in: Space.cameraRaw)?.lowercased() {
    case "true", "1": return true
    case "false", "0": return false
    default: throw RenditionRefusal("crs:\(name) is \(value.shown)")
    }
  }

  private func isHarmless(_ name: String, _ value: Value) -> Bool {
    if value.isNeutral || Self.silent.contains(name) || name.hasPrefix("UprightTransform_")
      || name.hasPrefix("UprightFourSegments_")
    {
      return true
    }
    switch (name, value) {
    case ("WhiteBalance", .text(let text)): return text == "As Shot"
    case ("Temperature", _), ("Tint", _): return self.text("WhiteBalance", in: Space.cameraRaw) == "As Shot"
    case ("CameraProfile", .text(let text)): return text == "Embedded"
    case ("ToneCurveName", .text(let text)), ("ToneCurveName2012", .text(let text)): return text == "Linear"
    case ("PerspectiveScale", .text(let text)), ("CurveRefineSaturation", .text(let text)):
      return Self.number(text) == 100
    case (_, .structure(let node)) where name.hasPrefix("ToneCurve"): return node.points == ["0, 0", "255, 255"]
    default: return false
    }
  }

  /// Properties that have no effect on the picture, or only together with another property that would not be neutral.
  /// XMP Specification Part 2 §3.3, and later additions of Camera Raw.
  private static let silent = Set(
    """
    Version ProcessVersion CompatibleVersion HasSettings HasCrop AlreadyApplied RawFileName CameraProfileDigest
    CropTop CropLeft CropBottom CropRight CropAngle CropConstrainToWarp CropConstrainToUnitSquare
    SharpenRadius SharpenDetail SharpenEdgeMasking LuminanceNoiseReductionDetail LuminanceNoiseReductionContrast
    ColorNoiseReductionDetail ColorNoiseReductionSmoothness VignetteMidpoint PostCropVignetteMidpoint
    PostCropVignetteFeather PostCropVignetteRoundness PostCropVignetteStyle PostCropVignetteHighlightContrast
    GrainSize GrainFrequency GrainSeed DefringePurpleHueLo DefringePurpleHueHi DefringeGreenHueLo DefringeGreenHueHi
    ParametricShadowSplit ParametricMidtoneSplit ParametricHighlightSplit SplitToningShadowHue
    SplitToningHighlightHue SplitToningBalance ColorGradeMidtoneHue ColorGradeGlobalHue ColorGradeBlending
    LensProfileSetup LensProfileName LensProfileFilename LensProfileDigest LensProfileIsEmbedded
    UprightVersion UprightCenterMode UprightCenterNormX UprightCenterNormY UprightFocalMode UprightFocalLength35mm
    UprightPreview UprightTransformCount UprightDependentDigest UprightGuidedDependentDigest
    UprightFourSegmentsCount AutoWhiteVersion ToggleStyleDigest ToggleStyleAmount
    """.split { $0 == " " || $0 == "\n" }.map(String.init))
}

extension XMLTree {
  /// The items of a list.
  fileprivate var points: [String] {
    children.flatMap { list in list.children.map(\.text.trimmed) }
  }
}
