import Testing

@testable import BlobUpload

@Suite struct PartPlanTests {
  private func cut(_ plan: PartPlan) -> [Part] {
    var parts: [Part] = []
    var offset: Int64 = 0
    while let part = plan.part(from: offset, number: parts.count + 1), let length = part.length, length > 0 {
      parts.append(part)
      offset += length
    }
    return parts
  }

  @Test(arguments: [1, 99, 100, 101, 199, 200, 201, 1_000_000_007] as [Int64])
  func partsCoverTheWholeOnceAndInOrder(length: Int64) {
    let parts = cut(PartPlan(length: length, wanted: length > 1000 ? 10_000_000 : 100))
    #expect(parts.reduce(0) { $0 + $1.length! } == length)
    #expect(parts.map(\.start) == parts.dropLast().reduce(into: [0]) { $0.append($0.last! + $1.length!) })
    #expect(parts.filter(\.isLast).count == 1)
    #expect(parts.last?.isLast == true)
  }

  @Test func nothingIsLeftOfAnEmptySource() {
    #expect(PartPlan(length: 0).part(from: 0, number: 1) == nil)
  }

  @Test func aSourceGoesInOnePartUnlessSomethingLimitsIt() {
    let length: Int64 = 6 << 40
    #expect(PartPlan(length: length).part(from: 5, number: 1)?.length == length - 5)
  }

  @Test func theTightestLimitWins() {
    #expect(PartPlan(length: 1000, wanted: 500, limits: PartLimits(largest: 100)).partSize == 100)
    #expect(PartPlan(length: 1000, wanted: 5, limits: PartLimits(smallest: 50)).partSize == 50)
    #expect(PartPlan(length: 1000, limits: PartLimits(largest: 100)).partSize == 100)
  }

  @Test func aLimitedCountMakesPartsLarger() {
    let plan = PartPlan(length: 10_001, wanted: 1, limits: PartLimits(count: 100))
    #expect(cut(plan).count <= 100)
  }

  @Test func anUnknownLengthGoesOnUntilItsLastPart() {
    #expect(PartPlan(length: nil).part(from: 7, number: 2) == Part(number: 2, start: 7, length: nil, isLast: true))
    #expect(PartPlan(length: nil, wanted: 10).part(from: 10, number: 2)?.isLast == false)
  }
}
