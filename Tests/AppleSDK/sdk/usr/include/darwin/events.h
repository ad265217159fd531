// kqueue(2) and kevent(2), sys/event.h.
#pragma once
#include <darwin/types.h>
#pragma clang assume_nonnull begin
#define EVFILT_READ -1
#define EVFILT_WRITE -2
#define EVFILT_VNODE -4
#define EVFILT_USER -10
#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_DISABLE 0x0008
#define EV_ONESHOT 0x0010
#define EV_CLEAR 0x0020
#define EV_ERROR 0x4000
#define EV_EOF 0x8000
#define NOTE_TRIGGER 0x01000000
struct kevent {
  uintptr_t ident; int16_t filter; uint16_t flags; uint32_t fflags; intptr_t data; void * _Null_unspecified udata;
};
int kqueue(void);
int kevent(int, const struct kevent * _Nullable, int, struct kevent * _Nullable, int, const struct timespec * _Nullable);
#pragma clang assume_nonnull end
