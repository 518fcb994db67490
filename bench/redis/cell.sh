#!/bin/sh
# cell.sh OUTDIR -- builds redis-cell from its crate: OUTDIR/libredis_cell.so.
set -eu
out=$(CDPATH='' cd -- "$1" && pwd)
[ ! -f "$out/libredis_cell.so" ] || exit 0
mkdir -p "$out/fetch"
cd "$out/fetch"
cat >Cargo.toml <<'END'
[package]
name = "fetch"
version = "0.1.0"
[lib]
path = "fetch.rs"
[dependencies]
redis-cell = "=0.2.2"
END
: >fetch.rs
CARGO_TARGET_DIR=$out/target cargo build --release -p redis-cell
cp "$out/target/release/deps/libredis_cell"*.so "$out/libredis_cell.so"
