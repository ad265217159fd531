import Synchronization
import Testing

@testable import BlobApple

/// Changes of the photo library, of which readers must know.
struct AssetWatchesTests {
  /// An asset as PhotoKit gives it: it does not change, later versions are other values.
  private struct Photo: Sendable, Equatable {
    var version = 1
    var number = 1
  }
  private let watches = AssetWatches<Photo>()

  private final class Count: Sendable {
    let value = Mutex(0)
  }

  private func watch(_ count: Count) -> Int {
    watches.watch(Photo()) {
      $0.version == 1
    } changed: {
      count.value.withLock { $0 += 1 }
    }
  }

  @Test(arguments: [nil, 1, 2], [false, true]) func anotherVersionEndsTheReader(
    version: Int?, hasOtherContent: Bool
  ) {
    let count = Count()
    _ = watch(count)
    let change = AssetChange(after: version.map { Photo(version: $0) }, hasOtherContent: hasOtherContent)
    for _ in 0..<2 { watches.apply { _ in change } }
    #expect(count.value.withLock { $0 } == (version == 1 && !hasOtherContent ? 0 : 1))
  }

  @Test func otherChangesLeaveTheReader() {
    let count = Count()
    _ = watch(count)
    watches.apply { _ in nil }
    watches.apply { _ in AssetChange(after: Photo(number: 2), hasOtherContent: false) }
    #expect(count.value.withLock { $0 } == 0)
  }

  /// PhotoKit compares a change with the asset that it is asked about, which must be that of the change before.
  @Test func eachChangeIsComparedWithTheOneBefore() {
    let count = Count()
    let asked = Mutex<[Int]>([])
    let number = watch(count)
    for next in 2...3 {
      watches.apply { photo in
        asked.withLock { $0.append(photo.number) }
        return AssetChange(after: Photo(number: next), hasOtherContent: false)
      }
    }
    #expect(asked.withLock { $0 } == [1, 2])
    watches.forget(number)
    watches.apply { _ in AssetChange(after: nil, hasOtherContent: false) }
    #expect(count.value.withLock { $0 } == 0)
  }
}
