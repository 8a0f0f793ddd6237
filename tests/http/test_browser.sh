# The dashboard in a real browser; the test itself is browser/test.mjs.
# SW_SCREENSHOTS=DIR keeps pictures of every state.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${SW_BUILD_DIR:=$here/../../build}"
folder=$SW_BUILD_DIR/http-browser
if ! "$here/browser/setup" "$folder"; then
	echo "Bail out! the browser test's packages cannot be installed"
	exit 1
fi
cd "$folder" && exec node test.mjs
