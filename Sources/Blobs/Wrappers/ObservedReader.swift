/// A reader whose bytes are observed as they are read. It offers no file region, because bytes that are sent from one
/// would not be observed.
package final class ObservedReader: BlobReader {
  private let reader: any BlobReader
  private let observe: (_ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Void
  private var offset: Int64

  /// `offset`: where `reader` was opened. `observe` is called after each read, on the thread of the caller of `read`, with
  /// the bytes and the offset of the first one; at the end there are none.
  package init(
    _ reader: any BlobReader, at offset: Int64 = 0,
    _ observe: @escaping (_ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Void
  ) {
    self.reader = reader
    self.observe = observe
    self.offset = offset
  }

  package var info: BlobInfo { reader.info }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.readChecked(into: buffer)
    observe(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), offset)
    offset += Int64(count)
    return count
  }

  package func fileRegion() -> FileRegion? { nil }

  package func finish() throws(BlobError) { try reader.finish() }
}
