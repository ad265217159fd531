// expect: cannot convert
import Darwin
func f(_ status: stat) -> Int32 { status.st_mode & S_IFMT }
