#!/usr/bin/env bash
# Runs the battery of scripts/processor_battery.py by genuine aarch64 wheels under qemu, and compares its digests
# with those of this machine: `0 differ`, or exit status 1.
#
#     scripts/test_aarch64.sh [FOLDER]
#
# Needs a Debian or Ubuntu on x86-64 with apt-get and dpkg, a Python that has robustgen and pip ($PYTHON, else
# .venv/bin/python), and the network. Downloads 200 MB into FOLDER (build/aarch64) and installs nothing. The first
# run takes a quarter of an hour, most of it for the compilation of the loops; later ones take less.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "${PYTHON:-.venv/bin/python}")
mkdir -p "${1:-build/aarch64}"
folder=$(realpath "${1:-build/aarch64}")
root=$folder/root
release=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

apt_of() {
    # Lists and a cache of its own, so that this machine's stay as they are.
    local state=$folder/apt-$1
    mkdir -p "$state"/{state/lists/partial,cache/archives/partial}
    touch "$state/status"
    apt-get -qq -o Dir::State="$state/state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
        -o APT::Architecture="$1" -o APT::Architectures="$1" -o APT::Sandbox::User=root "${@:2}"
}

if [[ ! -x $root/usr/bin/python$release ]]; then
    rm -rf "$folder/debs" "$root"
    mkdir -p "$folder/debs" "$root"
    for architecture in amd64 arm64; do
        apt_of $architecture update
    done
    (
        cd "$folder/debs"
        apt_of amd64 download qemu-user-static
        # Debian's own Python where it is of this release, with all that it and the wheels load.
        apt_of arm64 download "python$release-minimal" "libpython$release-minimal" "libpython$release-stdlib" \
            libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 \
            libuuid1 libcrypt1 libgomp1
    )
    for package in "$folder"/debs/*.deb; do
        dpkg -x "$package" "$root"
    done
fi

wheels=$folder/site
if [[ ! -d $wheels ]]; then
    platforms=()
    for tag in manylinux2014 manylinux_2_17 manylinux_2_24 manylinux_2_26 manylinux_2_27 manylinux_2_28; do
        platforms+=(--platform "${tag}_aarch64")
    done
    # The releases of this machine; OpenCV without its windows, which need libraries of a desktop.
    mapfile -t packages < <("$python" -c '
from importlib.metadata import PackageNotFoundError, version
for name in ("numpy", "scipy", "pillow", "numba", "llvmlite", "pyyaml"):
    print(f"{name}=={version(name)}")
for name in ("opencv-python", "opencv-python-headless"):
    try:
        print(f"opencv-python-headless=={version(name)}")
        break
    except PackageNotFoundError:
        pass
')
    rm -rf "$wheels.partial"
    "$python" -m pip install --quiet --no-deps --only-binary=:all: --python-version "$release" \
        --implementation cp "${platforms[@]}" --target "$wheels.partial" "${packages[@]}"
    "$python" -m pip install --quiet --no-deps --target "$wheels.partial" imagecorruptions==1.1.2
    mv "$wheels.partial" "$wheels"
fi

echo "this machine"
NUMBA_CACHE_DIR=$folder/loops-here PYTHONPATH=$PWD "$python" scripts/processor_battery.py --quick >"$folder/here.txt"
echo "aarch64 under qemu"
NUMBA_CACHE_DIR=$folder/loops-aarch64 PYTHONPATH=$PWD:$wheels PYTHONDONTWRITEBYTECODE=1 \
    "$root/usr/bin/qemu-aarch64-static" -L "$root" "$root/usr/bin/python$release" \
    scripts/processor_battery.py --quick >"$folder/aarch64.txt"
if [[ ! -s $folder/here.txt ]]; then
    echo "no digests" >&2
    exit 1
fi
differ=$(diff "$folder/here.txt" "$folder/aarch64.txt" | grep '^[<>]' || true)
echo "$differ"
echo "$(wc -l <"$folder/here.txt") digests, $(grep -c '^<' <<<"$differ" || true) differ"
[[ -z $differ ]]
