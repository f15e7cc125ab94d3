#!/usr/bin/env bash
# Cross-compiles the native core for aarch64 and runs its laws there, in qemu, with Debian's Python for aarch64.
# `make aarch64` calls it, and installs what it needs.  What it fetches stays in var/aarch64, beside the system and not in it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
folder=$PWD/var/aarch64
debs="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libexpat1 zlib1g libssl3 libffi8 libbz2-1.0
  liblzma5 libsqlite3-0 libgcc-s1 libstdc++6 libuuid1"
wheels="cssselect2 hypothesis iniconfig msgspec numpy packaging pluggy pygments pytest pytest-asyncio regex selectolax
  sortedcontainers tinycss2 typing-extensions webencodings xxhash"

if [ ! -e "$folder/root.stamp" ]; then
  mkdir -p "$folder/debs" "$folder/lists/partial" "$folder/root"
  (
    cd "$folder/debs"
    apt="apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists=$folder/lists
      -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root"
    $apt update && $apt download $debs
    for deb in *.deb; do dpkg-deb -x "$deb" "$folder/root"; done
  )
  touch "$folder/root.stamp"
fi

if [ ! -e "$folder/wheels.stamp" ] || [ deploy/requirements-test.lock -nt "$folder/wheels.stamp" ] || [ deploy/aarch64.sh -nt "$folder/wheels.stamp" ]; then
  rm -rf "$folder/wheels"
  # A requirement of the lock is a line `name==version`, followed by lines with its hashes.
  awk -v names="$wheels" '
    BEGIN { split(names, list); for (n in list) wanted[list[n]] = 1 }
    /^[a-z0-9]/ { split($0, parts, /[=\[]/); is_wanted = parts[1] in wanted }
    is_wanted' deploy/requirements-test.lock > "$folder/requirements.lock"
  $python -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --python-version 3.11 \
    --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 --target "$folder/wheels" -r "$folder/requirements.lock"
  touch "$folder/wheels.stamp"
fi

# The package is copied, as the library of this machine lies in its folder.
rm -rf "$folder/package"
mkdir "$folder/package"
cp -R daemon/neardup "$folder/package"
native=$folder/package/neardup/core/native
rm -f "$native"/*.so
aarch64-linux-gnu-gcc -std=c11 -O3 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden "$native"/*.c -o "$native/_neardup.abi3.so"

laws=$(grep -rl --include='test_*.py' pytest.mark.native tests)
export PYTHONPATH=$folder/package:$folder/wheels:$PWD PYTHONDONTWRITEBYTECODE=1
run="qemu-aarch64-static -L $folder/root $folder/root/usr/bin/python3.11"
$run -c "import platform; from neardup.core.native import LIBRARY; assert LIBRARY; print('laws of the native core on', platform.machine())"
exec $run -m pytest -p no:cacheprovider --noconftest --hypothesis-profile=ci -m 'native and hypothesis' $laws
