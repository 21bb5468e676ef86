#!/bin/sh
# Usage: scripts/site_versions.sh
# Builds the pages of this commit and of each release side by side: build/site-versions/main, and 1.0.0 for the tag
# v1.0.0, with the list for the selector of versions. The address without a version leads to the newest release.
set -eu
cd "$(dirname "$0")/.."
mkdocs=$PWD/${VENV:-.venv}/bin/mkdocs site=$PWD/build/site-versions
rm -rf "$site"
mkdir -p "$site"
releases=$(git -c versionsort.suffix=rc tag --list 'v[0-9]*' --sort=-version:refname)
for tag in $releases HEAD; do
    version=${tag#v}
    [ "$tag" = HEAD ] && version=main
    rm -rf build/release
    mkdir -p build/release
    git archive "$tag" | tar x -C build/release
    sed -i "s#^site_url: .*#&/$version#" build/release/mkdocs.yml
    (cd build/release && PYTHONPATH=. "$mkdocs" build --quiet --site-dir "$site/$version")
    [ -e "$site/index.html" ] || echo "<meta http-equiv=\"refresh\" content=\"0; url=$version/\">" >"$site/index.html"
    list="${list:+$list, }{\"version\": \"$version\", \"title\": \"$version\", \"aliases\": []}"
done
echo "[$list]" >"$site/versions.json"
