import Blobs
import Synchronization
import Testing

@testable import BlobApple

/// A request for data of PhotoKit, which delivers until its end or until it is cancelled.
struct PhotoRequestTests {
  private final class Log: Sendable {
    let cancelled = Mutex<[Int32]>([])
    let ends = Mutex<[BlobError.Code?]>([])
  }
  private let log = Log()

  private func request() -> PhotoRequest {
    PhotoRequest(cancelling: { [log] number in log.cancelled.withLock { $0.append(number) } }) { [log] error in
      log.ends.withLock { $0.append(error?.code) }
    }
  }
  private var cancelled: [Int32] { log.cancelled.withLock { $0 } }
  private var ends: [BlobError.Code?] { log.ends.withLock { $0 } }

  /// Otherwise the rest of a film would be delivered to nobody, from iCloud over the network.
  @Test(arguments: [false, true]) func anEditEndsTheDelivery(isBeforeTheNumber: Bool) {
    let request = request()
    if !isBeforeTheNumber { request.begin(7) }
    request.end(because: BlobError(.changed, "edited"))
    if isBeforeTheNumber { request.begin(7) }
    #expect(cancelled == [7] && ends == [.changed])
    // The refused piece, the reader's end and PhotoKit's own.
    request.cancel()
    request.cancel()
    request.complete(BlobError(.cancelled, "cancelled"))
    #expect(cancelled == [7] && ends == [.changed])
  }

  @Test(arguments: [false, true]) func aReaderThatGoesAwayEndsTheDelivery(isBeforeTheNumber: Bool) {
    let request = request()
    if !isBeforeTheNumber { request.begin(7) }
    request.cancel()
    if isBeforeTheNumber { request.begin(7) }
    #expect(cancelled == [7] && ends.isEmpty)
  }

  @Test func aCompleteRequestIsNotCancelled() {
    for isAtOnce in [false, true] {
      let request = request()
      if !isAtOnce { request.begin(7) }
      request.complete(nil)
      if isAtOnce { request.begin(7) }
      request.cancel()
      request.end(because: BlobError(.changed, "edited"))
      #expect(cancelled.isEmpty)
    }
    #expect(ends == [nil, nil])
  }

  /// PhotoKit's connection breaks, for example, and neither data nor an end comes any more.
  @Test func handlersThatAreReleasedEndTheRequest() {
    let request = request()
    var handlers: PhotoRequest.Handlers? = PhotoRequest.Handlers(of: request, "read a photo")
    request.begin(7)
    #expect(handlers != nil && ends.isEmpty)
    handlers = nil
    #expect(ends == [.invalidated])
    request.cancel()
    #expect(cancelled.isEmpty, "PhotoKit knows no such request any more")
  }

  @Test func handlersThatAreReleasedAfterTheEndDoNotEndTheRequestAgain() {
    let request = request()
    var handlers: PhotoRequest.Handlers? = PhotoRequest.Handlers(of: request, "read a photo")
    request.begin(7)
    handlers?.request.complete(nil)
    handlers = nil
    #expect(ends == [nil])
  }
}
