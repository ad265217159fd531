import Testing

@testable import BlobUpload

@Suite struct ProgressTests {
  @Test func aRepeatedAttemptMovesThePositionBackButStaysTraffic() {
    let totals = UploadTotals()
    let one = Progress(totals: totals)
    let two = Progress(totals: totals)
    one.advance(by: 100)
    two.advance(by: 50)
    one.settle(at: 30)
    one.advance(by: 70)
    #expect(one.sent == 100)
    #expect(one.acknowledged == 30)
    #expect(totals.sent == 220)
    #expect(totals.acknowledged == 30)
  }

  @Test func whatAnEarlierRunBroughtIsNotOurDoing() {
    let totals = UploadTotals()
    let progress = Progress(totals: totals)
    progress.resume(at: 1000)
    progress.advance(by: 24)
    progress.settle(at: 1024)
    #expect(progress.resumed == 1000)
    #expect(progress.sent == 1024)
    #expect(totals.sent == 24)
    #expect(totals.acknowledged == 24)
  }
}
