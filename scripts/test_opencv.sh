#!/bin/sh
# Usage: [VENV=.venv] scripts/test_opencv.sh [RELEASE ...]
# Writes the demo set with several releases of OpenCV, and fails unless all have the same digest.
set -eu
cd "$(dirname "$0")/.."
python=$(realpath -s "${VENV:-.venv}/bin/python")
[ $# -gt 0 ] || set -- '4.10.*' '4.12.*' '5.0.*'

first=
for release in "$@"; do
    folder=build/opencv/$(echo "$release" | tr -d '.*')
    rm -rf "$folder/demo-c"
    [ -d "$folder/cv2" ] ||
        "$python" -m pip --disable-pip-version-check --quiet install --no-deps --target "$folder" \
            "opencv-python-headless==$release"
    export PYTHONPATH="$folder"
    version=$("$python" -c 'import cv2; print(cv2.__version__)')
    "$python" -m robustgen make-c --dataset demo --output "$folder/demo-c" >/dev/null
    digest=$("$python" -m robustgen verify "$folder/demo-c" | sed -n 's/.*0 findings; digest //p')
    echo "OpenCV $version: $digest"
    [ "${first:=$digest}" = "$digest" ] && [ -n "$digest" ] || { echo "other pixels than before" >&2; exit 1; }
done
