// expect: cannot convert value of type 'Int32' to expected argument type 'Int16'
import Darwin
func f(_ descriptor: Int32) -> kevent {
  kevent(ident: UInt(descriptor), filter: EVFILT_READ, flags: UInt16(EV_ADD), fflags: 0, data: 0, udata: nil)
}
