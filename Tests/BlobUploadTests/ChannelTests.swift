import Testing

@testable import BlobUpload

@Suite struct ChannelTests {
  @Test(arguments: [1, 3, 64]) func everyElementIsReadOnce(readers: Int) async {
    let channel = BatchChannel<Int>(ahead: 2)
    let seen = await withTaskGroup(of: [Int].self) { group in
      group.addTask {
        for batch in 0..<50 { _ = await channel.send(Array(batch * 20..<(batch + 1) * 20)) }
        channel.finish()
        return []
      }
      for _ in 0..<readers {
        group.addTask {
          var read: [Int] = []
          while let element = await channel.next() { read.append(element) }
          return read
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(seen.sorted() == Array(0..<1000))
  }

  @Test func aFinishedChannelEndsItsReaders() async {
    let channel = BatchChannel<Int>(ahead: 1)
    async let one = channel.next()
    async let two = channel.next()
    channel.finish()
    #expect(await one == nil)
    #expect(await two == nil)
  }

  @Test func emptyBatchesAreNoEnd() async {
    let channel = BatchChannel<Int>(ahead: 5)
    #expect(await channel.send([]))
    #expect(await channel.send([7]))
    channel.finish()
    #expect(await channel.next() == 7)
    #expect(await channel.next() == nil)
  }

  @Test func droppingAChannelReturnsItsElementsOnceAndReleasesTheWriter() async {
    let channel = BatchChannel<Int>(ahead: 0)
    let writer = Task {
      var refused: [Int] = []
      for n in 0..<100 where await !channel.send([n]) { refused.append(n) }
      return refused
    }
    let read = await channel.next()
    let dropped = channel.drop()
    #expect(await [read!] + dropped + writer.value == Array(0..<100))
    #expect(await channel.next() == nil)
    #expect(await !channel.send([100]))
  }

  @Test func aGateLetsOnlySoManyIn() async {
    let gate = Gate(3)
    let crowd = Crowd()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask {
          await gate.pass {
            await crowd.enter()
            await Task.yield()
            await crowd.leave()
          }
        }
      }
    }
    #expect(await crowd.most <= 3)
    #expect(await crowd.inside == 0)
  }
}

private actor Crowd {
  var inside = 0
  var most = 0
  func enter() {
    inside += 1
    most = max(most, inside)
  }
  func leave() { inside -= 1 }
}
