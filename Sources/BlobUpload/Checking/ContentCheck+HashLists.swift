import Blobs

// A history of hash lists, of which the destination may have more than the source.
extension ContentCheck {
  /// Bytes of the longest chain that is read.
  private static let longestChain = 4 << 20

  /// Whether the item is the chain of a history that goes on at the destination: the chain there begins with the same lists.
  /// Throws if no other item can be compared.
  func isContinued(_ item: UploadItem) async throws(UploadError) -> Bool {
    let path = item.target.plainPath
    guard path.name == HashListChain.name, path.folder.name == HashListChain.folder, !item.isSealed,
      item.info.length ?? .max <= Self.longestChain
    else { return false }
    do throws(UploadError) {
      guard let theirs = try await uploader.content(of: item.target, atMost: Self.longestChain) else { return false }
      let ours = try await Self.content(of: item)
      let (long, short) = (try HashListReader.chain(theirs, path), try HashListReader.chain(ours, path))
      return long.generations.starts(with: short.generations)
    } catch {
      if error.endsQueue { throw error }
      // A file that is no chain of hash lists was compared as any other, by its bytes.
      return false
    }
  }

  private static func content(of item: UploadItem) async throws(UploadError) -> [UInt8] {
    try await readingSource { cancel, noteRead throws(BlobError) in
      let reader = try BlobSlice(item.source, length: item.info.length, validator: item.info.validator).open(cancel)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      var bytes: [UInt8] = []
      while true {
        let count = try reader.read(into: buffer)
        if count == 0 { return bytes }
        noteRead(count)
        bytes += buffer.prefix(count)
      }
    }
  }
}
