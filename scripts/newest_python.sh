#!/bin/sh
# Usage: scripts/newest_python.sh FOLDER [RELEASE]
# Unpacks a Python that this system lacks from the packages of Debian's next release, without installing them,
# and makes a virtual environment with pip: FOLDER/venv. Needs Debian on x86-64, and patchelf.
set -eu
root=$(realpath -m "$1") release=${2:-3.14}

mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/debs"
keys=$(ls /usr/share/keyrings/debian-archive-keyring.* | head -n 1)
address=$(grep -rhoE '[a-z]+://[^ ]+/debian/?( |$)' /etc/apt/sources.list* | head -n 1)
echo "deb [signed-by=$keys] ${address:?"no package archive of Debian is known here"} forky main" >"$root/apt/sources.list"
apt() {
    apt-get -qq -o Dir::Etc::SourceList="$root/apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Status=/dev/null \
        -o Dir::State::Lists="$root/apt/lists" -o Dir::Cache="$root/apt" -o APT::Install-Recommends=false "$@"
}
apt update
apt --download-only --yes install "python$release" python3-pip-whl >/dev/null
for package in "$root"/apt/archives/*.deb; do
    dpkg-deb --extract "$package" "$root"
done

# It runs with the C library that it was built for.
libraries=$root/usr/lib/x86_64-linux-gnu
patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" "$root/usr/bin/python$release"
"$root/usr/bin/python$release" -m venv --without-pip "$root/venv"
"$root/venv/bin/python" "$(echo "$root"/usr/share/python-wheels/pip-*.whl)/pip" --disable-pip-version-check --quiet install pip
"$root/venv/bin/python" -V
