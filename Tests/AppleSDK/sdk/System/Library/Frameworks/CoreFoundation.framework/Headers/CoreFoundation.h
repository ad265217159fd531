#pragma once
#include <Availability.h>
#include <darwin.h>
#define CF_BRIDGED_TYPE(T) __attribute__((objc_bridge(T)))
#define CF_BRIDGED_MUTABLE_TYPE(T) __attribute__((objc_bridge_mutable(T)))
#define CF_OPTIONS(_type,_name) enum __attribute__((flag_enum,enum_extensibility(open))) _name : _type _name; enum _name : _type
#define CF_ENUM(_type,_name) enum __attribute__((enum_extensibility(open))) _name : _type _name; enum _name : _type
#pragma clang assume_nonnull begin
#pragma clang arc_cf_code_audited begin
typedef unsigned long CFOptionFlags; typedef long CFIndex; typedef unsigned long CFTypeID;
typedef const CF_BRIDGED_TYPE(id) void *CFTypeRef;
typedef const struct CF_BRIDGED_TYPE(NSString) __CFString *CFStringRef;
typedef const struct CF_BRIDGED_TYPE(id) __CFAllocator *CFAllocatorRef;
typedef struct CF_BRIDGED_MUTABLE_TYPE(id) __CFRunLoop *CFRunLoopRef;
typedef struct CF_BRIDGED_MUTABLE_TYPE(id) __CFRunLoopSource *CFRunLoopSourceRef;
typedef struct CF_BRIDGED_MUTABLE_TYPE(NSInputStream) __CFReadStream *CFReadStreamRef;
typedef CFStringRef CFRunLoopMode __attribute__((swift_newtype(struct)));
extern const CFRunLoopMode kCFRunLoopDefaultMode;
extern const CFRunLoopMode kCFRunLoopCommonModes;
typedef struct {
  CFIndex version;
  void *_Nullable info;
  void *_Nullable (*_Nullable retain)(void *_Nullable info);
  void (*_Nullable release)(void *_Nullable info);
  CFStringRef _Nullable (*_Nullable copyDescription)(void *_Nullable info);
} CFStreamClientContext;
typedef CF_OPTIONS(CFOptionFlags, CFStreamEventType) {
  kCFStreamEventNone = 0, kCFStreamEventOpenCompleted = 1, kCFStreamEventHasBytesAvailable = 2,
  kCFStreamEventCanAcceptBytes = 4, kCFStreamEventErrorOccurred = 8, kCFStreamEventEndEncountered = 16
};
typedef void (*CFReadStreamClientCallBack)(CFReadStreamRef _Null_unspecified stream, CFStreamEventType type, void *_Null_unspecified clientCallBackInfo);
typedef struct {
  CFIndex version; void *_Null_unspecified info;
  const void *_Null_unspecified(*_Null_unspecified retain)(const void *_Null_unspecified info);
  void (*_Null_unspecified release)(const void *_Null_unspecified info);
  CFStringRef _Null_unspecified(*_Null_unspecified copyDescription)(const void *_Null_unspecified info);
  Boolean (*_Null_unspecified equal)(const void *_Null_unspecified info1, const void *_Null_unspecified info2);
  CFOptionFlags (*_Null_unspecified hash)(const void *_Null_unspecified info);
  void (*_Null_unspecified schedule)(void *_Null_unspecified info, CFRunLoopRef _Null_unspecified rl, CFRunLoopMode _Null_unspecified mode);
  void (*_Null_unspecified cancel)(void *_Null_unspecified info, CFRunLoopRef _Null_unspecified rl, CFRunLoopMode _Null_unspecified mode);
  void (*_Null_unspecified perform)(void *_Null_unspecified info);
} CFRunLoopSourceContext;
extern CFRunLoopRef _Null_unspecified CFRunLoopGetCurrent(void);
extern CFRunLoopRef _Null_unspecified CFRunLoopGetMain(void);
extern CFRunLoopMode _Null_unspecified CFRunLoopCopyCurrentMode(CFRunLoopRef _Null_unspecified rl);
extern Boolean CFRunLoopContainsSource(CFRunLoopRef _Null_unspecified rl, CFRunLoopSourceRef _Null_unspecified source, CFRunLoopMode _Null_unspecified mode);
extern CFRunLoopSourceRef _Null_unspecified CFRunLoopSourceCreate(CFAllocatorRef _Null_unspecified allocator, CFIndex order, CFRunLoopSourceContext *_Null_unspecified context);
extern void CFRunLoopAddSource(CFRunLoopRef _Null_unspecified rl, CFRunLoopSourceRef _Null_unspecified source, CFRunLoopMode _Null_unspecified mode);
extern void CFRunLoopRemoveSource(CFRunLoopRef _Null_unspecified rl, CFRunLoopSourceRef _Null_unspecified source, CFRunLoopMode _Null_unspecified mode);
extern void CFRunLoopSourceSignal(CFRunLoopSourceRef _Null_unspecified source);
extern void CFRunLoopSourceInvalidate(CFRunLoopSourceRef _Null_unspecified source);
enum __attribute__((enum_extensibility(open))) CFRunLoopRunResult : int;
typedef enum CFRunLoopRunResult CFRunLoopRunResult;
enum CFRunLoopRunResult : int { kCFRunLoopRunFinished = 1, kCFRunLoopRunStopped = 2, kCFRunLoopRunTimedOut = 3, kCFRunLoopRunHandledSource = 4 };
extern CFRunLoopRunResult CFRunLoopRunInMode(CFRunLoopMode _Null_unspecified mode, double seconds, Boolean returnAfterSourceHandled);
extern void CFRunLoopStop(CFRunLoopRef _Null_unspecified rl);
extern void CFRunLoopWakeUp(CFRunLoopRef _Null_unspecified rl);
extern void CFRunLoopPerformBlock(CFRunLoopRef _Null_unspecified rl, CFTypeRef _Null_unspecified mode, void (^_Null_unspecified block)(void));
#pragma clang arc_cf_code_audited end
#pragma clang assume_nonnull end
