// expect: cannot find 'fdatasync' in scope
import Darwin
func f(_ descriptor: Int32) -> Int32 { fdatasync(descriptor) }
