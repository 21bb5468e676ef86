#!/bin/sh
# Usage: [PYTHON=python3] [VENV=.venv] scripts/setup.sh [EXTRA,EXTRA]
# Installs this checkout, editable, into a virtual environment that it makes where there is none.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=${VENV:-.venv}
extras=[opencv,video,demo${1:+,$1}]

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
# Without a GPU, PyTorch's builds without CUDA, of a twentieth of the size; where they do not fit, the usual builds.
works() {
    "$venv/bin/python" -c 'import torch, torchvision' 2>/dev/null
}
case "$(uname) $extras" in
Linux*torch* | Linux*timm*)
    if ! [ -e /proc/driver/nvidia ] && ! works; then
        pip install --retries 0 --index-url https://download.pytorch.org/whl/cpu torch torchvision || true
        # Other indexes that pip is told of may mix both kinds of build.
        works || {
            echo "setup: PyTorch's builds without CUDA cannot be installed; installing those with CUDA"
            pip uninstall --yes torch torchvision
        }
    fi
    ;;
esac
pip install --editable ".$extras"

# The photographs of frost, and what the tests need besides: the masks of ink of medmnist-c:stain_deposit.
case "$extras" in
*test* | *dev*) "$venv/bin/robustgen" fetch frost ink ;;
*) "$venv/bin/robustgen" fetch frost ;;
esac
