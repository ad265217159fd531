// expect: no such module 'CCurl'
// target: arm64-apple-ios18.0
import CCurl
func f() { curl_global_cleanup() }
