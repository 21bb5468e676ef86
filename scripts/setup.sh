#!/bin/sh
# Usage: [PYTHON=python3] [VENV=.venv] scripts/setup.sh [EXTRA,EXTRA]
# Installs this checkout, editable, into a virtual environment that it makes where there is none.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=${VENV:-.venv}
extras=${1:+[$1]}

fail() {
    echo "setup: $1" >&2
    exit 1
}

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    command -v "$python" >/dev/null || fail "there is no $python; name an interpreter: make PYTHON=..."
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        fail "robustgen needs Python 3.10 or newer, and $python is $("$python" -V 2>&1); name another: make PYTHON=..."
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv"
    "$python" -m venv --clear "$venv"
fi

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"
}

echo "setup: installing robustgen$extras into $venv"
pip install --editable ".$extras"

# opencv-python needs libGL and other system libraries that bare servers lack; the headless build needs none.
if ! "$venv/bin/python" -c 'import cv2' 2>/dev/null; then
    version=$("$venv/bin/python" -c 'from importlib.metadata import version; print(version("opencv-python"))')
    echo "setup: opencv-python cannot load here; taking opencv-python-headless $version instead"
    pip uninstall --yes opencv-python opencv-python-headless
    pip install "opencv-python-headless==$version"
    "$venv/bin/python" -c 'import cv2'
fi
