// Computes the checksum of any source, which is read through a synchronous InputStream.
//   ChecksumExample [FILE]
import BlobCrypto
import BlobStreams
import Blobs
import Foundation

let film = Array("all the bytes of a film, one after the other\n".utf8)
let source: any BlobSource =
  CommandLine.arguments.count > 1 ? FileSource(BytePath(CommandLine.arguments[1]).absolute()) : DataSource(film)

let stream = BlobInputStream(source)
stream.open()
let digest = Digest(.sha256)
var buffer = [UInt8](repeating: 0, count: 64 << 10)
reading: while true {
  let count = stream.read(&buffer, maxLength: buffer.count)
  switch count {
  case 0: break reading
  case 1...: buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
  default:
    print("could not be read:", stream.streamError!.localizedDescription)
    exit(1)
  }
}
stream.close()
print("SHA-256", digest.hexValue())

// Hashing the same bytes in one call must give the same digest.
if CommandLine.arguments.count == 1 && digest.hexValue() != Digest.hex(of: film, .sha256) {
  print("that is wrong")
  exit(1)
}
