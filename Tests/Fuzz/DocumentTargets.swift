import Blobs
import Foundation

@testable import BlobHTTP
@testable import BlobUpload

/// What S3 and WebDAV servers answer with, and hash lists.
func fuzzXML(_ data: UnsafeRawBufferPointer) {
  let bytes = Array(data)
  _ = try? HashListReader.chain(bytes, "chain")
  _ = try? HashListReader.read(bytes, "list") { records in precondition(records.allSatisfy { $0.path.isNameBelow }) }
  _ = S3ErrorResponse(HTTPResponse(head: HTTPHead(status: 400, headers: [:]), body: bytes))?.recovery
  guard let root = XMLTree(bytes) else { return }
  precondition(depth(of: root) <= 16)
  _ = root.text.escapedXML
  for element in root.children {
    _ = (element.text("PartNumber"), element.all("Part"), element.text("Initiated").flatMap(S3Multipart.seconds))
  }
}

private func depth(of element: XMLTree) -> Int { 1 + (element.children.map(depth).max() ?? 0) }

/// A path in the first line, and a document.
func fuzzJSON(_ data: UnsafeRawBufferPointer) {
  let lines = data.split(separator: 10, maxSplits: 1, omittingEmptySubsequences: false)
  guard lines.count == 2, let path = JSONPath(text(lines[0])) else { return }
  _ = path.value(in: Array(lines[1]))
}

/// What a journal has of an upload: a session, as its column has it.
func fuzzJournal(_ data: UnsafeRawBufferPointer) {
  let text = Data(data)
  if let session = try? JSONDecoder().decode(UploadSession.self, from: text) {
    _ = try? S3Upload(session).url(["partNumber": "1"])
    _ = (session.sizeOfParts, session.partURLs, try? session.uploadURL())
    plan(session.limits)
    for length in [0, 1, 1 << 40, Int64.max] {
      if let size = session.partSize { _ = PartPlan(length: length, partSize: size).part(from: 0, number: 1) }
    }
  }
  if let destination = try? JSONDecoder().decode(JournalDestination.self, from: text) {
    _ = (HTTPURL(destination.endpoint), destination.s3?.address.url, destination.form?.reply.flatMap(JSONPath.init))
  }
}

/// Amazon's files, as people write them.
func fuzzSettings(_ data: UnsafeRawBufferPointer) {
  let content = text(data)
  _ = S3Profile("default", credentials: content, config: content)
  _ = try? S3Settings.load(environment: { _ in nil }, read: { _ in content })
}
