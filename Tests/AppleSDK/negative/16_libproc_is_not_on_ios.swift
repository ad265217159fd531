// expect: cannot find 'proc_pidinfo' in scope
// target: arm64-apple-ios18.0
import Darwin
func f(_ pid: Int32) -> Int32 { proc_pidinfo(pid, 3, 0, nil, 0) }
