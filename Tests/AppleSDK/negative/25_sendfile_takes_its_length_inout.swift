// expect: cannot convert value of type|missing argument|extra argument
import Darwin
func f(_ file: Int32, _ socket: Int32, _ count: Int) -> Int { sendfile(socket, file, nil, count) }
