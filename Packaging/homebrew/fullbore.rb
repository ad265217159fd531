# A draft of a formula for Homebrew. It was not run on a Mac, and no release exists that it could download: before use, put the
# address of the repository into `homepage` and `head`. To try it from a checkout:
#   brew install --HEAD ./Packaging/homebrew/fullbore.rb
class Fullbore < Formula
  desc "Sends photos and videos to servers, and goes on at the same byte"
  homepage "https://example.org/fullbore"
  license "Apache-2.0"
  head "https://example.org/fullbore.git", branch: "main"

  depends_on "pkgconf" => :build
  depends_on xcode: ["16.3", :build] # Swift 6.1
  depends_on macos: :sequoia
  depends_on "openssl@3"
  depends_on "qrencode"
  # libcurl and SQLite are those of macOS.

  def install
    system "swift", "build", "--disable-sandbox", "--configuration", "release", "--product", "fullbore"
    bin.install ".build/release/fullbore"
  end

  test do
    (testpath/"photo.jpg").write "bytes of a photo"
    (testpath/"inbox").mkpath
    port = free_port
    server = spawn bin/"fullbore", "serve", testpath/"inbox", "--listen", "127.0.0.1:#{port}"
    sleep 2
    system bin/"fullbore", "push", testpath/"photo.jpg", "http://127.0.0.1:#{port}/", "--journal", testpath/"journal"
    assert_equal "bytes of a photo", (testpath/"inbox/photo.jpg").read
  ensure
    Process.kill "TERM", server if server
  end
end
