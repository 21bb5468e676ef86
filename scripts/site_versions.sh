#!/bin/sh
# Usage: scripts/site_versions.sh
# Adds the pages of each release to those of this checkout: build/site-html/1.0.0 for the tag v1.0.0. After `make site`.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
git tag --list 'v[0-9]*' | while read -r tag; do
    rm -rf build/release
    mkdir -p build/release
    git archive "$tag" | tar x -C build/release
    (cd build/release && PYTHONPATH=. "$root/.venv/bin/mkdocs" build --quiet --site-dir "$root/build/site-html/${tag#v}")
done
