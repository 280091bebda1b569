#!/usr/bin/env bash
# Puts the viewer of the reports, NiiVue, into regnet/report/assets: one file of the npm package at the version below,
# packed. Its result is in the repository, so that a build needs no network; run it again after changing the version.
set -euo pipefail
version=0.69.0
sha256=6e9a6a471b428eb3b258a0086beca9187d95e43a781a39e8a519c6da246af485
cd "$(dirname "$0")/../regnet/report/assets"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
curl -fsSL -o "$scratch/niivue.tgz" "https://registry.npmjs.org/@niivue/niivue/-/niivue-$version.tgz"
echo "$sha256  $scratch/niivue.tgz" | sha256sum --check --quiet
tar -xzf "$scratch/niivue.tgz" -C "$scratch" package/dist/niivue.umd.js
gzip -9nc "$scratch/package/dist/niivue.umd.js" >niivue.umd.js.gz
sha256sum niivue.umd.js.gz
