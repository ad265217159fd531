import BlobUpload
import Blobs
import Synchronization

@testable import fullbore

/// Collects the messages about outages, other notices, and the paths of sources that have failed.
final class Notes: PushReport {
  private let paths = Mutex<[BytePath]>([])
  var failed: [BytePath] { paths.withLock { $0 } }
  private let state = Mutex<[Outage]>([])
  var last: Outage? { state.withLock { $0.last } }
  var outages: [String] { state.withLock { $0.map(\.text) } }
  /// When the outages began, in seconds since 1970.
  var begins: [Int64] { state.withLock { $0.map(\.since) } }
  func outage(_ outage: Outage) { state.withLock { $0.append(outage) } }
  func started(_ file: PushedFile) {}
  func finished(_ file: PushedFile, how: Finish) {}
  func failed(_ file: PushedFile, _ message: String, _ error: UploadError?, advice: String?) {}
  func began(at endpoint: String, speaking protocolName: String) {}
  func failed(_ path: BytePath, _ message: String) { paths.withLock { $0.append(path) } }
  func dropped(_ file: PushedFile) {}
  func leftOut(_ path: BytePath, reason: String) {}
  private let said = Mutex<[String]>([])
  var notices: [String] { said.withLock { $0 } }
  func notice(_ text: String) { said.withLock { $0.append(text) } }
  func ended(_ text: String, _ error: UploadError?) {}
  func summary(_ summary: PushSummary) {}
}
