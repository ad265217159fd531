import Blobs
import Testing

@testable import fullbore

@Suite struct SettlingTests {
  private let start = ContinuousClock.now
  private let file: BytePath = "/gallery/film.mov"

  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }
  /// `#expect` does not allow mutating calls.
  private func expect(_ wanted: Bool, _ found: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(found == wanted, sourceLocation: sourceLocation)
  }
  private func stamp(_ size: Int64) -> FileStamp {
    FileStamp(device: 1, inode: 2, size: size, modified: size, changed: size)
  }

  @Test func aFileThatStaysAsItIsRests() {
    var settling = Settling(rest: .seconds(2))
    expect(true, settling.note(file, as: "film.mov", stamp(1), after: .seconds(2), at: at(0)))
    #expect(settling.due(at: at(1.9)).isEmpty && settling.next == at(2))
    #expect(settling.due(at: at(2)).map(\.path) == [file])
    expect(true, settling.look(file, stamp(1), .none, at: at(2)))
    #expect(settling.isEmpty && settling.next == nil)
  }

  /// The other files of a photo get the number of its picture, so that comes first.
  @Test func thePictureOfAPhotoComesBeforeItsOtherFiles() {
    var settling = Settling(rest: .seconds(2))
    let names = (0..<50).flatMap { number in ["AAE", "ARW", "JPG"].map { BytePath("/card/IMG_\(number).\($0)") } }
    for name in names { expect(true, settling.note(name, as: name.name, stamp(1), after: .seconds(2), at: at(0))) }
    var options = TreeOptions()
    options.mostPhotos = PhotoGroups.most
    let due = settling.due(at: at(2), options).map(\.path.description)
    #expect(due.count == 150)
    for start in stride(from: 0, to: due.count, by: 3) {
      let stem = due[start].dropLast(3)
      #expect(Array(due[start..<start + 3]) == ["\(stem)JPG", "\(stem)ARW", "\(stem)AAE"])
    }
  }

  @Test func aClosedFileWaitsForTheWholeRestIfTheOptionSaysSo() {
    #expect(Settling(rest: .seconds(2)).restOnceClosed == .milliseconds(250))
    #expect(Settling(rest: .seconds(2), waitsOnceClosed: true).restOnceClosed == .seconds(2))
  }

  @Test func everyChangeBeginsTheWaitAnew() {
    var settling = Settling(rest: .seconds(2))
    expect(true, settling.note(file, as: "film.mov", stamp(1), after: .seconds(2), at: at(0)))
    for second in stride(from: 2.0, to: 10, by: 2) {
      expect(false, settling.look(file, stamp(Int64(second)), .none, at: at(second)))
      #expect(settling.due(at: at(second + 1.9)).isEmpty)
    }
    expect(true, settling.look(file, stamp(8), .none, at: at(10)))
  }

  @Test func aFileThatIsOpenIsLookedAtEverMoreSeldom() {
    var settling = Settling(rest: .seconds(2))
    expect(true, settling.note(file, as: "film.mov", stamp(1), after: .seconds(2), at: at(0)))
    var waits: [Duration] = []
    for _ in 0..<7 {
      let now = settling.next!
      expect(false, settling.look(file, stamp(1), .some, at: now))
      waits.append(now.duration(to: settling.next!))
    }
    #expect(waits == [2, 4, 8, 16, 30, 30, 30].map { .seconds($0) })
    // The file was closed: a notice reports this, and the rest period starts at that time.
    expect(true, settling.note(file, as: "film.mov", stamp(2), after: settling.restOnceClosed, at: at(500)))
    #expect(settling.due(at: at(500.25)).count == 1)
    expect(true, settling.look(file, stamp(2), .none, at: at(500.25)))
  }

  /// For a file of another user, only notices show whether it is open.
  @Test func aFileWaitsLongerIfItsWritersCannotBeSeen() {
    var settling = Settling(rest: .seconds(2))
    func restsAfter(_ notices: Settling.Notices) -> ClosedRange<Double> {
      expect(true, settling.note(file, as: "film.mov", stamp(1), notices, after: .seconds(2), at: at(0)))
      var last = 0.0
      while let due = settling.next {
        let now = start.duration(to: due) / .seconds(1)
        if settling.look(file, stamp(1), .unknown, at: due) { return last...now }
        last = now
      }
      return 0...0
    }
    #expect(restsAfter(.closed) == 0...2)
    let unseen = restsAfter(.none)
    #expect(unseen.lowerBound < 60 && (60..<90).contains(unseen.upperBound), "\(unseen)")
    let unclosed = restsAfter(.written)
    #expect(unclosed.lowerBound < 900 && (900..<930).contains(unclosed.upperBound), "\(unclosed)")
  }

  @Test func noticesOfWritersAreKeptUntilTheNextOne() {
    var settling = Settling(rest: .seconds(2))
    expect(false, settling.noteWrite(to: file))
    expect(true, settling.note(file, as: "film.mov", stamp(1), after: .seconds(2), at: at(0)))
    expect(true, settling.noteWrite(to: file))
    // A walk has also found the file.
    expect(true, settling.note(file, as: "film.mov", stamp(1), after: .seconds(2), at: at(100)))
    expect(false, settling.look(file, stamp(1), .unknown, at: at(102)))
    // For the user's own files the system reports open files, whatever the notices say.
    var own = settling
    expect(true, own.look(file, stamp(1), .none, at: at(103)))
    var closed = settling
    expect(true, closed.note(file, as: "film.mov", stamp(2), .closed, after: .milliseconds(250), at: at(103)))
    expect(false, closed.look(file, stamp(3), .unknown, at: at(104)))
    expect(true, closed.look(file, stamp(3), .unknown, at: at(106)))
    // If notices were lost, the file may have been closed without a notice.
    settling.forgetNotices()
    expect(true, settling.look(file, stamp(1), .unknown, at: at(104)))
  }

  @Test func onlySoManyAreKept() {
    var settling = Settling(rest: .seconds(2), limit: 2)
    for name: BytePath in ["/a", "/b", "/a"] {
      expect(true, settling.note(name, as: name, stamp(1), after: .zero, at: start))
    }
    expect(false, settling.note("/c", as: "c", stamp(1), after: .zero, at: start))
    #expect(settling.count == 2 && !settling.contains("/c"))
    settling.drop("/a")
    expect(true, settling.note("/c", as: "c", stamp(1), after: .zero, at: start))
  }

  @Test func refusedVersionsAreRememberedUntilTheyChange() {
    var refused = RememberedFiles()
    refused.insert(file, stamp(1).validator)
    #expect(refused.contains(file, stamp(1).validator))
    #expect(!refused.contains(file, stamp(2).validator) && !refused.contains("/other", stamp(1).validator))
  }
}
