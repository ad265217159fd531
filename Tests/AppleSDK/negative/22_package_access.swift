// expect: cannot find 'KeyedChecksum' in scope
import BlobCrypto
func f() -> Int { KeyedChecksum.keyCount }
