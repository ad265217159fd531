// A photo library that answers on the main queue, as some do, read as a stream that tells when it has bytes.
//   PhotoLibraryExample       prints the length and the digest of a photograph
import BlobStreams
import Blobs
import Foundation

let photo = EventedBlobSource { PhotoRequest(of: PhotoLibrary.shared, named: "IMG_0001.HEIC") }

// Asynchronous: the library answers on this very thread, which must not wait for it.
let stream = BlobInputStream(photo, asynchronous: true)
let sum = Checksum()
stream.delegate = sum
stream.schedule(in: .main, forMode: .default)
stream.open()
while !sum.isDone { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
stream.close()

if let error = BlobError(underlying: stream.streamError) {
  print("the photograph could not be read:", error)
  exit(1)
}
print("IMG_0001.HEIC has \(sum.count) bytes, SHA-256 \(sum.hexValue)")
