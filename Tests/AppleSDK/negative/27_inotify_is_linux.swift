// expect: cannot find 'inotify_init1' in scope
import Platform
func f() -> Int32 { inotify_init1(0) }
