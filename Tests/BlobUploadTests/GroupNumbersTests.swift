import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// The numbers that a push remembers for photos, so that all files of a photo get the same one.
@Suite struct GroupNumbersTests {
  private let numbers = GroupNumbers(waitsForUnseen: true) { item, _ in item }

  private func group(_ number: Int, isMain: Bool = true) -> FileGroup {
    FileGroup(BytePath("/card/\(number)"), isMain: isMain)
  }

  @Test func onlyTheLatestGroupsAreRemembered() {
    let count = 3 * GroupNumbers.mostGroups
    for number in 0..<count { numbers.end(group(number), at: number % 2 + 1) }
    #expect(numbers.count == GroupNumbers.mostGroups)
    #expect(numbers.isKnown(group(count - 1, isMain: false)) && !numbers.isKnown(group(0, isMain: false)))
    #expect(numbers.number(of: group(count - 1)) == 2 && numbers.number(of: group(count - 2)) == nil)
    #expect(numbers.number(of: group(1)) == nil)
  }

  /// A file that gets a number of its own after its photo has arrived does not change that of the photo.
  @Test func theNumberOfAPhotoThatHasArrivedStays() {
    numbers.note(2, of: group(1, isMain: false))
    #expect(numbers.number(of: group(1)) == 2 && !numbers.isKnown(group(1)))
    numbers.end(group(1), at: 3)
    numbers.note(9, of: group(1, isMain: false))
    #expect(numbers.number(of: group(1)) == 3)
    numbers.note(4, of: group(1))
    #expect(numbers.number(of: group(1)) == 4 && numbers.isKnown(group(1)))
  }

  private func work(_ number: Int, isMain: Bool) -> ClaimedItem {
    let (url, source) = (HTTPURL("http://media.example/in/")!, PatternSource(length: 1))
    let name = BytePath("\(number).\(isMain ? "jpg" : "mov")")
    var item = UploadItem(
      source: source, info: source.info, identity: BytePath("/card").appending(name),
      target: UploadTarget(endpoint: url, url: url.appending(pathBytes: name.bytes), path: name, length: 1))
    item.group = group(number, isMain: isMain)
    return ClaimedItem(item, .fresh(1))
  }

  private func sent(_ script: Script) -> [String] {
    script.requests.filter { $0.method == "PUT" }.map {
      String($0.url.description.dropFirst("http://media.example".count))
    }
  }

  /// Another process sends another picture to the place of one of these, whose film has a place of its own.
  @Test(arguments: [false, true]) func theFilmOfAPictureThatAnotherProcessSendsIsNotSentAlone(_ waits: Bool)
    async throws
  {
    let (desk, process) = (try await Desk(), IdleProcess())
    let theirs = try await Journal(at: desk.journal.path, as: process.mark)
    let script = Script { _, request throws(TransportError) in .status(request.method == "PUT" ? 201 : 404) }
    var queue = desk.queue(script)
    queue.naming.groups = GroupNumbers(waitsForUnseen: false, numbering: nil)
    queue.destinationID = try await desk.journal.destinationID(.tus)
    let items = [work(1, isMain: true).item, work(1, isMain: false).item]
    var other = items[0].intent()
    other.source = "/other/1.jpg"
    let id = try #require(try await theirs.claim([other], destination: queue.destinationID).first?.id)
    let requestsBefore = Mutex<Int?>(nil)
    if waits {
      queue.waiting = { _ in }
      queue.others.sleep = { _ in
        requestsBefore.withLock { $0 = $0 ?? script.methods.count }
        theirs.released(id)
        try await theirs.flush()
      }
    }
    let left = Mutex([items])
    let outcomes = Outcomes()
    try await queue.run({ left.withLock { $0.popLast() } }, outcomes)
    if waits {
      #expect(requestsBefore.withLock { $0 } == 0)
      #expect(outcomes.sent == 2 && sent(script) == ["/in/1.jpg", "/in/1.mov"])
    } else {
      for name in ["1.jpg", "1.mov"] {
        guard case .busy(process.pid) = outcomes[name] else {
          Issue.record("\(name): \(String(describing: outcomes[name]))")
          continue
        }
      }
      #expect(script.methods.isEmpty)
    }
    await theirs.close()
    process.end()
  }

  /// Where files get no numbers, a group is forgotten with the last of its files, also if the picture was refused.
  @Test(arguments: [false, true]) func nothingIsRememberedOfFilesThatHaveEnded(_ isRefused: Bool) {
    let order = GroupNumbers(waitsForUnseen: false, numbering: nil)
    let (pictures, films) = ((0..<3).map { work($0, isMain: true) }, (0..<3).map { work($0, isMain: false) })
    order.begin(pictures + films)
    #expect(order.count == 3)
    for (picture, film) in zip(pictures, films) {
      #expect(order.keepsWaiting(film))
      if isRefused { order.note(UploadError(.giveUp, .file, "refused"), of: picture.item) }
      #expect(order.end(picture).count == 1)
      #expect(!order.keepsWaiting(film))
      #expect((order.refusal(of: film) != nil) == isRefused)
      #expect(order.end(film).isEmpty)
    }
    #expect(order.count == 0)
  }
}
