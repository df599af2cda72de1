#!/bin/sh
# Renders every overlay to rendered/, which is committed.
set -eu
cd "$(dirname "$0")"
for overlay in dev prod; do
  kubectl kustomize "overlays/$overlay" |
    reconstruct synth - --policy policy.yaml --output "rendered/$overlay"
done
