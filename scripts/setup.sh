#!/bin/sh
# Usage: [PYTHON=python3] [VENV=.venv] [TORCH=cuda] [UV_CONSTRAINT=FILE] scripts/setup.sh [EXTRA,EXTRA]
# Installs this checkout, editable, into a virtual environment that it makes where there is none.
# With UV_CONSTRAINT, uv takes the releases that a file names: pip tries others of what these need, one after the other.
# TORCH=cuda takes PyTorch's builds with CUDA, of 5 GB, where those without it cannot be downloaded.
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

# Without a GPU, PyTorch's builds without CUDA, of a twentieth of the size.
works() {
    "$venv/bin/python" -c 'import torch, torchvision' 2>/dev/null
}
case "$(uname) $extras" in
Linux*torch* | Linux*timm*)
    if ! [ -e /proc/driver/nvidia ] && ! works; then
        echo "setup: installing PyTorch without CUDA into $venv"
        pip install --retries 0 --index-url https://download.pytorch.org/whl/cpu torch torchvision || true
        # Other indexes that pip is told of may mix both builds.
        if ! works; then
            pip uninstall --yes torch torchvision
            if [ "${TORCH:-}" != cuda ]; then
                echo "setup: PyTorch without CUDA cannot be installed: going on without PyTorch and timm;" \
                    "the tests that need them are skipped. To install the builds with CUDA, 5 GB: TORCH=cuda"
                extras=$(echo "$extras" | sed 's/,torch//; s/,timm//')
            fi
        fi
    fi
    ;;
esac
echo "setup: installing robustgen$extras into $venv"
if [ "${UV_CONSTRAINT:-}" ]; then
    pip install uv
    "$venv/bin/python" -m uv pip install --quiet --editable ".$extras"
else
    pip install --editable ".$extras"
fi

# The photographs of frost, and what the tests need besides: the masks of ink of medmnist-c:stain_deposit.
case "$extras" in
*test* | *dev*) "$venv/bin/robustgen" fetch frost ink ;;
*) "$venv/bin/robustgen" fetch frost ;;
esac
