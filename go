#!/usr/bin/env bash
# Sets bdforge up and does its main jobs; `./go help` lists them.
set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/.bdforge-stamp           # written last: what this environment was made from
unfinished=$venv/.bdforge-unfinished # there while a new environment is being made
device=strix_halo
design=gemm_i8_i2_bitnet
model_design=gemm_i8_i2_bf16 # BitNet's linear layers with their scales on the array
model=examples/bitnet/licence.gguf

usage() {
  cat <<EOF
usage: ./go run [options of 'bdforge run']   build the BitNet GEMM and run it on the emulated array; without options a
                                             tiny BitNet writes a few words on it, too
       ./go fmt                              format and mend what ruff can mend
       ./go check                            lint, types, and the nearest tests of what differs from main: a minute at most
       ./go test [pytest arguments]          everything that CI runs
       ./go sweep [pytest arguments]         the long tests, marked slow
       ./go site                             the docs as a site in build/site, with a playground where npm is
       ./go bench FILE [--page PAGE]         time a few figures, append them to FILE as a line of JSON; draw FILE's lines
       ./go mutate [options] [FILES]         plant faults in files, by default the changed ones: which do the tests miss?
       ./go help                             this text
The first call makes .venv from requirements.lock. docs/building.md has the details.
EOF
}

fail() { # fail MESSAGE: one sentence, exit code 2
  printf 'go: %s\n' "$1" >&2
  exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# Prints the first Python that can make environments. The environment's own Python is no candidate: it may be replaced.
find_python() {
  local name path without_venv='' search=":$PATH:"
  search=${search//":$venv/bin:"/:}
  for name in python3.14 python3.13 python3.12 python3.11 python3; do
    path=$(PATH=${search:1:-1} type -P "$name") || continue
    "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
    if "$path" -c 'import ensurepip, venv' >/dev/null 2>&1; then
      printf '%s\n' "$path"
      return
    fi
    without_venv=${without_venv:-$name}
  done
  if [[ -n $without_venv ]]; then
    fail "$without_venv cannot make environments: install $without_venv-venv (Debian, Ubuntu: sudo apt-get install $without_venv-venv)."
  fi
  fail "needs Python 3.11 or newer: install python3 (Debian, Ubuntu: sudo apt-get install python3 python3-venv)."
}

# What the environment depends on. Its scripts hold its place, so a copied or moved one is another.
fingerprint() {
  { cat "$root/requirements.lock" "$root/pyproject.toml" && "$1" -V && printf '%s\n' "$root"; } | sha256sum
}

ready() { [[ -x $python && -f $stamp && $(<"$stamp") == "$(fingerprint "$python" 2>/dev/null)" ]]; }

quietly() { # quietly WHAT COMMAND...: shows the end of the command's output only when it fails
  local what=$1 output
  shift
  if ! output=$("$@" 2>&1); then
    printf '%s\n' "$output" | tail -n 25 >&2
    fail "$what failed; the end of its output is above."
  fi
}

new_environment() {
  local base
  base=$(find_python)
  rm -rf -- "$venv"
  mkdir -- "$venv"
  touch -- "$unfinished"
  quietly 'making .venv' "$base" -m venv "$venv"
}

# A working environment of this place is brought up to date, which keeps what its owner installed besides (Peano, say);
# any other is made anew. Without a stamp an update was interrupted, so files may be missing: everything is installed again.
install() {
  local update=()
  if [[ -f $unfinished ]] || ! "$python" -m pip --version >/dev/null 2>&1 || ! made_here; then
    new_environment
  elif [[ ! -f $stamp ]]; then
    update=(--force-reinstall)
  fi
  printf 'go: installing what requirements.lock names into .venv\n' >&2
  rm -f -- "$stamp"
  local pip=(env -u PYTHONPATH -u PYTHONHOME PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
    "$python" -m pip install --no-input --progress-bar off --no-compile --no-deps) # what is imported is compiled then; the lock is whole
  quietly 'installing requirements.lock' "${pip[@]}" "${update[@]}" --require-hashes -r "$root/requirements.lock"
  quietly 'installing bdforge' "${pip[@]}" --no-build-isolation -e "$root"
  fingerprint "$python" >"$stamp"
  rm -f -- "$unfinished"
}

# shellcheck source=/dev/null
made_here() (
  set +eu
  . "$venv/bin/activate" && [[ $VIRTUAL_ENV -ef $venv ]]
)

setup() {
  unset PYTHONDONTWRITEBYTECODE # hundreds of processes that compile every module anew take minutes
  have g++ || fail "needs a C++ compiler: install g++ (Debian, Ubuntu: sudo apt-get install g++)."
  ready && return
  if have flock; then # a second call waits instead of installing into the same folder
    exec 9<"$root/go"
    flock 9
    ready || install
    exec 9<&-
  else
    install
  fi
}

build() { (cd -- "$root" && "$python" -m SCons -Q --silent -j "$(getconf _NPROCESSORS_ONLN)" "device=$device" "$@"); }

run() {
  setup
  build host "design=$design$( (($#)) || printf ',%s' "$model_design")"
  local home="$root/"
  [[ $PWD -ef $root ]] && home=
  "$venv/bin/bdforge" run "${home}build/$device/$design" "$@"
  (($#)) || "$venv/bin/bdforge" generate "$home$model" --design "${home}build/$device/$model_design" --split array \
    --prompt 'Subject to the terms' -n 24
}

stage() { # stage NAME COMMAND...: stops at the first that fails
  local name=$1 status=0
  shift
  printf '== %s\n' "$name"
  "$@" || status=$?
  if ((status)); then
    printf 'go %s: %s failed (exit code %d)\n' "$command" "$name" "$status" >&2
    exit "$status"
  fi
}

lint() {
  setup
  cd -- "$root"
  stage 'ruff check' "$python" -m ruff check --quiet
  stage 'ruff format' "$python" -m ruff format --check --quiet
  stage 'pyrefly' "$python" -m pyrefly check --summary=none
}

format() {
  setup
  cd -- "$root"
  stage 'ruff check' "$python" -m ruff check --quiet --fix
  stage 'ruff format' "$python" -m ruff format --quiet
}

check() {
  lint
  stage 'pytest' "$python" tools/testing/check.py
}

run_tests() {
  lint
  stage 'pytest' "$python" -m pytest -n 2 --dist worksteal -m 'not slow' "$@"
}

sweep() {
  setup
  cd -- "$root"
  stage 'pytest' "$python" -m pytest -n 2 --dist worksteal -m slow "$@"
}

site() {
  setup
  cd -- "$root"
  stage 'site' "$python" -m tools.site
}

bench() {
  setup
  "$python" "$root/benchmarks/tracked.py" "$@"
}

mutate() {
  setup
  build host
  "$python" "$root/tools/testing/mutate.py" "$@"
}

command=${1:-help}
case $command in
  fmt) format ;;
  check) check ;;
  run) run "${@:2}" ;;
  test) run_tests "${@:2}" ;;
  sweep) sweep "${@:2}" ;;
  site) site ;;
  bench) bench "${@:2}" ;;
  mutate) mutate "${@:2}" ;;
  help | -h | --help) usage ;;
  *)
    usage >&2
    fail "unknown command '$command'."
    ;;
esac
