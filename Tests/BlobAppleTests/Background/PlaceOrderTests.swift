import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// The turns of uploads at their places.
@Suite(.timeLimit(.minutes(1))) struct PlaceOrderTests {
  private let order = PlaceOrder()
  private let wakeUp = WakeUp()
  private func key(_ source: BytePath, _ name: String = "a.heic") -> String {
    TaskLabel.upload(of: source, to: "https://photos.example/\(name)", recipient: nil)
  }

  @Test func anUploadWaitsForEarlierOnesAtItsPlace() async throws {
    let (first, second) = (order.begin(key("A")), order.begin(key("B")))
    let elsewhere = order.begin(key("B", "b.heic"))
    #expect(order.isFirst(first) && !order.isFirst(second) && order.isFirst(elsewhere))
    #expect(order.hasOthers(than: key("A")) && !order.hasOthers(than: key("B", "b.heic")))
    let waiting = Task { [order, wakeUp] in
      wakeUp.enter()
      await order.wait(for: second, wakeUp)
      return order.isFirst(second)
    }
    order.end(first)
    #expect(await waiting.value)
    order.end(second)
    #expect(!order.hasOthers(than: key("A")))
  }

  /// Only one for which others wait goes behind them.
  @Test func aNewTurnIsBehindTheOthers() throws {
    let first = order.begin(key("A"))
    #expect(order.begin(behindOthersThan: first) == nil)
    let second = order.begin(key("B"))
    let again = try #require(order.begin(behindOthersThan: first))
    order.end(first)
    #expect(order.isFirst(second) && !order.isFirst(again))
    #expect(order.begin(behindOthersThan: again) == nil)
    order.end(second)
    #expect(order.isFirst(again))
  }

  @Test func aWaitIsCancelled() async throws {
    let first = order.begin(key("A"))
    let second = order.begin(key("B"))
    let waiting = Task { [order, wakeUp] in
      wakeUp.enter()
      await order.wait(for: second, wakeUp)
    }
    waiting.cancel()
    await waiting.value
    order.end(second)
    order.end(first)
  }

  /// Of one journal and one account.
  @Test func uploadersOfOneProcessShareTheOrder() async throws {
    let scratch = try ScratchFolder()
    let journal = try await Journal(at: scratch.path.appending("journal.sqlite"))
    let mine = SharedPlaces.of(journal, account: "me")
    #expect(SharedPlaces.of(journal, account: "me") === mine)
    #expect(SharedPlaces.of(journal, account: "you") !== mine && SharedPlaces.of(journal, account: nil) !== mine)
  }
}
