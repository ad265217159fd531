// CommonCrypto: CCCryptor(3cc).
#pragma once
#include <darwin/types.h>
enum { kCCSuccess = 0 };
typedef int32_t CCCryptorStatus;
enum { kCCEncrypt = 0, kCCDecrypt };
typedef uint32_t CCOperation;
enum { kCCAlgorithmAES128 = 0, kCCAlgorithmAES = 0 };
typedef uint32_t CCAlgorithm;
enum { kCCModeECB = 1, kCCModeCBC = 2, kCCModeCFB = 3, kCCModeCTR = 4 };
typedef uint32_t CCMode;
enum { ccNoPadding = 0, ccPKCS7Padding = 1 };
typedef uint32_t CCPadding;
enum { kCCModeOptionCTR_BE = 2 };
typedef uint32_t CCModeOptions;
typedef struct _CCCryptor *CCCryptorRef;
CCCryptorStatus CCCryptorCreateWithMode(CCOperation op, CCMode mode, CCAlgorithm alg, CCPadding padding, const void *iv,
                                        const void *key, size_t keyLength, const void *tweak, size_t tweakLength,
                                        int numRounds, CCModeOptions options, CCCryptorRef *cryptorRef);
CCCryptorStatus CCCryptorUpdate(CCCryptorRef cryptorRef, const void *dataIn, size_t dataInLength, void *dataOut,
                                size_t dataOutAvailable, size_t *dataOutMoved);
CCCryptorStatus CCCryptorRelease(CCCryptorRef cryptorRef);
