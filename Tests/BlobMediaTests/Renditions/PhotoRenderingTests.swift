import BlobMedia
import Testing

@Suite struct PhotoRenderingTests {
  private func rendering(
    _ edit: PhotoEdit, _ width: Int, _ height: Int, _ orientation: Int = 1, isTurned: Bool = false
  ) throws -> PhotoRendering {
    try PhotoRendering(
      edit, width: width, height: height, orientation: PhotoOrientation(orientation)!, isTurned: isTurned)
  }

  /// Corners and angles that Camera Raw 2.4 and Lightroom wrote for photos of 3 : 2 whose aspect ratio was preserved.
  /// With the opposite sign, or another center, the crop has another shape or extends beyond the picture.
  @Test(arguments: [
    (0.050593, 0.002557, 0.978571, 1.0, 1.934207), (0.014768, 0.0, 0.985232, 1.0, 0.797294),
  ])
  func cornersAreReadAsTheirWritersMeantThem(
    _ left: Double, _ top: Double, _ right: Double, _ bottom: Double, _ angle: Double
  ) throws {
    let edit = PhotoEdit(.corners(left: left, top: top, right: right, bottom: bottom, angle: angle))
    let result = try rendering(edit, 6000, 4000)
    #expect(abs(Double(result.width) / Double(result.height) - 1.5) < 0.0005, "\(result.width) × \(result.height)")
    let mirrored = PhotoEdit(.corners(left: left, top: top, right: right, bottom: bottom, angle: -angle))
    #expect(throws: RenditionRefusal.self) { try rendering(mirrored, 6000, 4000) }
  }

  @Test func aStraightFrameIsWholePixels() throws {
    let edit = PhotoEdit(.corners(left: 0.25, top: 0.1, right: 0.75, bottom: 0.9, angle: 0))
    let result = try rendering(edit, 1000, 500)
    guard case .exact(let area, let turn) = result.plan else {
      Issue.record("it is resampled")
      return
    }
    #expect([area.left, area.top, area.width, area.height] == [250, 50, 500, 400])
    #expect(turn == .upright && result.width == 500 && result.height == 400)
  }

  @Test(arguments: 1...8) func anOrientationTurnsTheFrameAndNotItsPlace(_ number: Int) throws {
    let edit = PhotoEdit(.corners(left: 0.25, top: 0.1, right: 0.5, bottom: 0.9, angle: 0))
    let result = try rendering(edit, 1000, 500, number)
    guard case .exact(let area, let turn) = result.plan else {
      Issue.record("it is resampled")
      return
    }
    #expect([area.left, area.top, area.width, area.height] == [250, 50, 250, 400])
    #expect(turn.number == number)
    #expect([result.width, result.height] == (number > 4 ? [400, 250] : [250, 400]))
  }

  /// The decoder of HEIC rotates the picture: the frame is then elsewhere, and no rotation remains.
  @Test func aFrameOfATurnedPictureTurnsWithIt() throws {
    let edit = PhotoEdit(.corners(left: 0, top: 0, right: 0.5, bottom: 0.25, angle: 0))
    guard case .exact(let area, let turn) = try rendering(edit, 4000, 3000, 6, isTurned: true).plan else {
      Issue.record("it is resampled")
      return
    }
    // The upper left corner of the stored picture is the upper right corner of the displayed one.
    #expect([area.left, area.top, area.width, area.height] == [2250, 0, 750, 2000])
    #expect(turn == .upright)
  }

  /// Core Image counts rows from the bottom.
  @Test func pixelsCountFromBelow() throws {
    let crop = PhotoEdit.Rectangle(x: 10, y: 20, width: 100, height: 50)
    guard
      case .exact(let area, let turn) = try rendering(
        PhotoEdit(.pixels(transform: .init(), crop: crop)), 640, 480
      ).plan
    else {
      Issue.record("it is resampled")
      return
    }
    #expect([area.left, area.top, area.width, area.height] == [10, 410, 100, 50])
    #expect(turn == .upright)
  }

  /// A quarter turn to the left, (x, y) to (-y, x), and a shift back into the first quadrant.
  @Test func aTransformThatOnlyTurnsMovesNoPixel() throws {
    var transform = PhotoEdit.Transform()
    (transform.a, transform.b, transform.c, transform.d, transform.tx) = (0, 1, -1, 0, 480)
    let result = try rendering(PhotoEdit(.pixels(transform: transform, crop: nil)), 640, 480)
    #expect(result.width == 480 && result.height == 640)
    guard case .exact(let area, let turn) = result.plan else {
      Issue.record("it is resampled")
      return
    }
    #expect([area.left, area.top, area.width, area.height] == [0, 0, 640, 480])
    // Orientation 8, as from a camera that was held so, means a turn to the left.
    #expect(turn.number == 8)
  }

  @Test func aSkewedEditOrACropBeyondThePictureIsRefused() {
    var bent = PhotoEdit.Transform()
    bent.b = 0.5
    let beyond = PhotoEdit.Rectangle(x: 600, y: 0, width: 100, height: 50)
    for edit in [
      PhotoEdit(.pixels(transform: bent, crop: nil)), PhotoEdit(.pixels(transform: .init(), crop: beyond)),
      PhotoEdit(.corners(left: 0, top: 0, right: 1, bottom: 1, angle: 5)),
    ] {
      #expect(throws: RenditionRefusal.self) { try rendering(edit, 640, 480) }
    }
  }

  @Test func argumentsCarryAnEditWhole() {
    var transform = PhotoEdit.Transform()
    (transform.a, transform.tx) = (0.1 + 0.2, -1e-17)
    for edit in [
      PhotoEdit(), PhotoEdit(orientation: PhotoOrientation(5)),
      PhotoEdit(.corners(left: 1 / 3, top: 0, right: 1, bottom: 0.9, angle: -2.000001)),
      PhotoEdit(.pixels(transform: transform, crop: .init(x: 1, y: 2, width: 3.5, height: 4))),
    ] {
      #expect(PhotoEdit(arguments: edit.arguments) == edit)
    }
    for words in [["--corners=1,2,3"], ["--orientation=9"], ["--corners=nan,0,1,1,0"], ["x"], ["--rectangle=1,2,3,4"]] {
      #expect(PhotoEdit(arguments: words) == nil)
    }
  }
}
