import BlobHTTP
import Blobs

// Comparing files with the objects of a bucket.
extension S3Multipart {
  public func remoteFile(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> RemoteFile? {
    let request = Self.head(target.url)
    let response = try await send(request, nil, with)
    if [404, 410].contains(response.status) { return nil }
    guard response.isSuccess else { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
    return RemoteFile(length: response.headers.bytes("Content-Length"), response.headers, hasTagOfContent: true)
  }

  public func listEntries(
    in folder: HTTPURL, _ with: UploadContext, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool {
    var cursor: S3Cursor?
    repeat {
      guard let page = try await page(of: folder, after: cursor, with) else { return false }
      try await take(page.entries.map { ListedEntry($0.name, isFolder: $0.isFolder) })
      cursor = page.next
    } while cursor != nil
    return true
  }
}
