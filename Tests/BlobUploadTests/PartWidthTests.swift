import Testing

@testable import BlobUpload

@Suite struct PartWidthTests {
  private let start = ContinuousClock.now

  /// Up to `useful` connections, each adds the same throughput.
  private func width(after rounds: Int, gainingUpTo useful: Int, most: Int = 16) -> Int {
    var (pace, now) = (PartWidth(most: most, at: start), start)
    for _ in 0..<rounds {
      let width = pace.width
      now += .seconds(Double(width) / Double(min(width, useful)))
      for _ in 0..<width { pace.arrived(1 << 20, at: now) }
    }
    return pace.width
  }

  @Test func theNumberOfPartsGrowsWhileTheThroughputGrows() {
    #expect(width(after: 0, gainingUpTo: 16) == 4)
    #expect(width(after: 1, gainingUpTo: 16) == 8)
    #expect(width(after: 5, gainingUpTo: 16) == 16)
    #expect(width(after: 9, gainingUpTo: 4) == 8, "one step too far shows that it is one")
    #expect(width(after: 9, gainingUpTo: 10) == 16)
    #expect(width(after: 9, gainingUpTo: 16, most: 3) == 3)
    #expect(PartWidth(most: 12, fixed: true).width == 12)
  }

  @Test func partsFitIntoOneField() {
    for length: Int64 in [16 << 20, 100 << 20, 256 << 20, 1 << 40, .max >> 20] {
      let size = ParallelRun.size(of: length)
      #expect((length + size - 1) / size <= 64)
      #expect(size >= 4 << 20 && size % (1 << 20) == 0)
    }
    #expect(ParallelRun.size(of: 256 << 20) == 4 << 20)
  }

  @Test func aPartsProgressIsTheWholes() {
    let totals = UploadTotals()
    let whole = UploadProgress(totals: totals)
    let (one, two) = (UploadProgress(partOf: whole), UploadProgress(partOf: whole))
    one.advance(by: 100)
    two.resume(at: 50)
    two.advance(by: 20)
    #expect(whole.sent == 170 && whole.acknowledged == 50 && whole.resumed == 50)
    one.settle(at: 90)
    two.settle(at: 70)
    #expect(whole.sent == 160 && whole.acknowledged == 160 && totals.acknowledged == 110 && totals.sent == 120)
    two.restart()
    #expect(whole.sent == 90 && whole.acknowledged == 90 && whole.resumed == 0 && totals.acknowledged == 90)
  }
}
