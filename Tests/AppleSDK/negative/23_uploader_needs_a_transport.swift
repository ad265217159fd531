// expect: missing argument for parameter 'transport'|missing arguments? for parameter|incorrect argument label
import BlobUpload
func f() -> Uploader { Uploader() }
