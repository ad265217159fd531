import BlobHTTP
import Blobs
import Synchronization
import Testing

@testable import BlobServer

/// Limits for what many clients make the server keep together.
struct BoundedMemoryTests {
  @Test func allFormsTogetherKeepOnlySoMuch() throws {
    let allowance = Allowance(64 << 10)
    let name = [UInt8](repeating: 97, count: 200)
    var forms: [FormEntries] = []
    while forms.count < 100 {
      let form = FormEntries(allowance, urlSize: 100)
      do throws(ServerError) {
        _ = try form.begin(name)
        forms.append(form)
      } catch {
        #expect(error.status == 503 && error.headers["Retry-After"] != nil)
        break
      }
    }
    #expect(1..<100 ~= forms.count, "\(forms.count)")
    // A form whose response was sent makes room for another one.
    forms.removeLast()
    #expect(try FormEntries(allowance, urlSize: 100).begin(name) == 0)
  }

  @Test func aFormKeepsNoLongErrors() throws {
    let form = FormEntries(Allowance(64 << 10), urlSize: 0)
    let entry = try #require(try form.begin([UInt8](repeating: 97, count: 5000)))
    form.end(entry, .failure(ServerError(409, String(repeating: "ä", count: 5000))))
    let told = Mutex(0)
    form.whenAllHaveEnded { results in
      told.withLock { $0 += 1 }
      #expect(results.entries.count == 1 && !results.permits.isEmpty)
      for entry in results.entries {
        guard case .failure(let failure)? = entry.result else { continue }
        #expect(failure.status == 409 && entry.name.count < 300 && failure.message.utf8.count < 600)
      }
    }
    #expect(told.withLock { $0 } == 1)
  }

  @Test func largeRecordsOfRecentUploadsAreForgottenEarlier() throws {
    var (small, large) = (RecentUploads(), RecentUploads())
    var random = SystemRandomNumberGenerator()
    let metadata = String(repeating: "a", count: 16_000)
    var latest = UploadID(using: &random)
    for _ in 0..<5000 {
      latest = UploadID(using: &random)
      let target = try ServedPath("x".utf8)
      func finished(_ metadata: String) -> SavedUpload {
        let record = UploadRecord(latest, target: target, existing: .keep, length: 1, metadata: metadata)
        return SavedUpload(record: record, offset: 1, isFinished: true, expires: 0)
      }
      small.remember(latest, finished(""))
      large.remember(latest, finished(metadata))
    }
    #expect(1000...2048 ~= small.count, "\(small.count)")
    #expect(100..<500 ~= large.count && large.bytes <= 4 << 20, "\(large.count)")
    #expect(large[latest] != nil)
    large.remember(latest, nil)
    if case .some(.some) = large[latest] { Issue.record("the upload is gone") }
    #expect(large.bytes < large.count * 16_200)
  }
}
