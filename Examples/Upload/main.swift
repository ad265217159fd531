// Uploads one file, and continues an interrupted upload when run again: UploadExample FILE URL/
import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

let arguments = CommandLine.arguments
guard arguments.count == 3, let url = HTTPURL(arguments[2]) else {
  print("usage: UploadExample FILE http://host/folder/")
  throw CancellationError()
}
let path = BytePath(arguments[1]).absolute()

let transport = SocketTransport()
let destination = try await UploadDestination.discover(url, over: transport)
let journal = try await Journal(at: "upload-example.sqlite")
let uploader = Uploader(destination, transport: transport, journal: journal)

let upload = uploader.start(FileSource(path), as: path.name, identity: path)
for await step in upload.progress { print(step.acknowledged, "bytes have arrived") }
if try await upload.result != nil {
  print("it is at", destination.target(path.name, length: nil).url)
} else {
  print("it was there already: nothing was sent")
}
await journal.close()
