import BlobTesting
import Platform
import Testing

@testable import Blobs

/// Unusual file times: from a camera with an empty battery, a foreign file system, or a server that invents them.
struct FileTimeTests {
  private static let second: Int64 = 1_000_000_000

  private func stamp(_ seconds: Int, _ nanoseconds: Int = 0) -> FileStamp {
    var status = stat()
    status.st_size = 5
    status.st_mtim = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
    status.st_ctim = status.st_mtim
    return FileStamp(status)
  }

  @Test func aTimeBeyondWhatCanBeCountedIsTheLastThatCan() {
    #expect(stamp(9_223_372_036, 854_775_807).modified == .max)
    for seconds in [9_223_372_037, 15_032_385_535, 99_999_999_999, .max] {
      #expect(stamp(seconds, 999_999_999).modified == .max)
      #expect(stamp(seconds).changed == .max)
    }
    for seconds in [-9_223_372_038, -99_999_999_999, .min] { #expect(stamp(seconds, 999_999_999).modified == .min) }
    #expect(stamp(-1).modified == -Self.second)
    #expect(stamp(-1, 500_000_000).modified == -500_000_000)
    #expect(stamp(0, .max).modified == .max && stamp(0, .min).modified == .min)
    #expect(stamp(.max, .max).modified == .max && stamp(.min, .min).modified == .min)
  }

  /// As stored in journals of this version and of earlier ones.
  @Test func validatorsOfOrdinaryTimesStayAsTheyWere() {
    #expect(stamp(1_700_000_000, 5).validator.version == "5-1700000000000000005")
    #expect(stamp(-1, 500_000_000).validator.version == "5--500000000")
    #expect(stamp(.max).validator.version == "5-9223372036854775807")
    #expect(stamp(.min).validator.version == "5--9223372036854775808")
  }

  @Test func whateverTheClockSaysTheWaitIsShort() {
    let times = [Int64.min, .min + 1, -Self.second, -1, 0, 1, 1_700_000_000 * Self.second, .max - 1, .max]
    for modified in times {
      for changed in times {
        let stamp = FileStamp(device: 1, inode: 1, size: 1, modified: modified, changed: changed)
        for now in times { #expect(0...(2 * Self.second) ~= stamp.unsettled(at: now), "\(modified) \(changed) \(now)") }
      }
    }
  }

  /// ext4 supports years up to 2446, tmpfs later ones.
  @Test(arguments: ["/var/tmp", "/tmp", "/dev/shm"]) func aFileFromTheFarFutureIsRead(_ folder: String) throws {
    var template = "\(folder)/fullbore-time-XXXXXX".utf8CString.map { $0 }
    let descriptor = mkstemp(&template)
    try check(descriptor >= 0)
    let path = BytePath(cString: template)
    defer { path.withCString { _ = unlink($0) } }
    try check(write(descriptor, [1, 2, 3] as [UInt8], 3) == 3)
    close(descriptor)
    for seconds in [99_999_999_999, -2_000_000_000] {
      let time = timespec(tv_sec: seconds, tv_nsec: 0)
      try check(path.withCString { utimensat(AT_FDCWD, $0, [time, time], 0) } == 0)
      var status = stat()
      try check(path.withCString { stat($0, &status) } == 0)
      for source in [FileSource(path), OpenFileSource(path)] as [any BlobSource] {
        #expect(try BlobSlice(source).readAll() == [1, 2, 3])
        #expect(try source.info(Cancellation()).validator == FileStamp(status, at: path).validator)
      }
    }
  }
}
