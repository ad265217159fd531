import BlobUpload
import Blobs
import Platform
import Testing

extension JournalTests {
  @Suite(.serialized) struct Cost {
    let folder = JournalFolder()

    @Test(arguments: [64, 256]) func smallFilesCostLittle(batch: Int) async throws {
      let count = 20_000
      let journal = try await folder.open()
      let destination = try await journal.destinationID(.tus)
      let empty = folder.size
      let batches = stride(from: 0, to: count, by: batch).map { ($0..<min($0 + batch, count)).map(file) }
      let cpu = processorTime()
      let began = ContinuousClock.now
      for intents in batches {
        for case let id? in try await journal.claim(intents, destination: destination).map(\.id) {
          journal.done(id, UploadResult(location: intents[0].target))
        }
      }
      try await journal.flush()
      let spent = (processorTime() - cpu) / count
      let wall = (ContinuousClock.now - began) / count
      let bytes = (folder.size - empty) / Int64(count)
      print("journal, \(batch) a batch: \(spent) of CPU, \(wall), \(bytes) bytes on disk for each file")
      #expect(bytes <= 2048)
      #expect(try await journal.summary().map(\.count) == [count])
      let again = ContinuousClock.now
      for intents in batches {
        let claims = try await journal.claim(intents, destination: destination)
        #expect(claims.allSatisfy { $0.name == "done" })
      }
      print("  claimed again, all done: \((ContinuousClock.now - again) / count) each")
      let closing = ContinuousClock.now
      await journal.close()
      let opening = ContinuousClock.now
      await (try folder.open()).close()
      print("  closed in \(opening - closing), opened and closed in \(ContinuousClock.now - opening)")
    }

    /// A path of about 80 bytes, and a URL of about 100.
    private func file(_ number: Int) -> JournalIntent {
      let path = "\(number / 500 + 1000)-wedding-at-the-lake/IMG_\(number + 100_000).JPG"
      return JournalIntent(
        source: BytePath("/home/photographer/Pictures/galleries/" + path),
        target: "https://uploads.photographer.example/galleries/summer/originals/" + path, path: BytePath(path),
        length: 5_000_000 + Int64(number),
        validator: Validator(
          version: "\(5_000_000 + number)-1719999999\(number + 100_000_000)", instance: "2049-\(number)-17199"),
        contentType: "image/jpeg")
    }

    private func processorTime() -> Duration {
      var time = timespec()
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
      return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
  }
}
