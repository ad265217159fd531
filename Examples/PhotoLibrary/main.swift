// Reads a photo library that calls back on the main queue, as an asynchronous stream.
//   PhotoLibraryExample       prints the length and the digest of a photograph
import BlobStreams
import Blobs
import Foundation

let photo = EventedBlobSource { PhotoRequest(of: PhotoLibrary.shared, named: "IMG_0001.HEIC") }

// The stream is asynchronous because the library calls back on this thread, which must not block.
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
