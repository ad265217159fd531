// expect: cannot find 'epoll_create1' in scope
import Platform
func f() -> Int32 { epoll_create1(0) }
