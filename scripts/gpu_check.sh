#!/usr/bin/env bash
# Everything that only a GPU can answer, in one go and in one file: the tests of tests/gpu, then training beside Hugging
# Face's Trainer for encoders of the sizes of BERT-base and MiniLM with random weights, on made-up rows that are as long
# as GLUE's. Needs no data and no network. Under 8 minutes on a GPU.
#
#   scripts/gpu_check.sh [--cpu] [OUT.json]     default: gpu_check.json in $OUT, or here
#
# --cpu, or no GPU: the same steps with one tiny encoder, which shows that the script works and nothing else.
# A step that fails or takes too long is recorded, the next one runs, and the exit code is 1 at the end.
# PYTHON names the interpreter; by default it is that of .venv.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
started_in=$OLDPWD
python=${PYTHON:-.venv/bin/python}
out=
kind=
for argument in "$@"; do
  case $argument in
    --cpu) kind=cpu ;;
    -*)
      echo "usage: scripts/gpu_check.sh [--cpu] [OUT.json]" >&2
      exit 2
      ;;
    *) out=$argument ;;
  esac
done
out=${out:-${OUT:-$started_in}/gpu_check.json}
[[ $out == /* ]] || out=$started_in/$out

export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH} HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
# A step that takes too long is ended by a signal at which Python says where it stood; no file of its memory is kept.
export PYTHONFAULTHANDLER=1
ulimit -c 0
if [[ $kind == cpu ]]; then
  export CUDA_VISIBLE_DEVICES=
else
  kind=$("$python" experiments/gpu_check.py device)
fi
if [[ $kind == cpu ]]; then
  echo '!!! ON A CPU: tiny encoders, to see that the script works. NOTHING HERE IS A SPEED, AND NO GPU IS CHECKED. !!!' >&2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MTL_CACHE_DIR=$work/cache
echo "$kind" >"$work/kind"
: >"$work/steps.tsv"
code=0

# step NAME SECONDS COMMAND...: run it, at most that long, and leave its exit code in $code.
step() {
  local name=$1 limit=$2 began=$SECONDS
  shift 2
  echo "== $name, at most $limit s"
  code=0
  timeout --signal=ABRT --kill-after=10 "$limit" "$@" >"$work/$name.log" 2>&1 || code=$?
  printf '%s\t%s\t%s\n' "$name" "$code" "$((SECONDS - began))" >>"$work/steps.tsv"
  if ((code)); then
    echo "   exit code $code; the end of what it said:"
    tail -n 15 "$work/$name.log"
  fi
}

# bench NAME LAYERS WIDTH HEADS FEED_FORWARD: one size of encoder, and the settings in $length and $against.
bench() {
  step "bench-$1" 130 "$python" -m mtl bench train "tasks=[$work/made.yaml]" encoder.kind=scratch \
    "encoder.tokenizer=$work/tokenizer" "encoder.layers=$2" "encoder.width=$3" "encoder.attention_heads=$4" \
    "encoder.feed_forward=$5" encoder.positions=512 training.rows_per_update=32 optimizer.learning_rate=5e-5 \
    "${length[@]}" "${against[@]}" --json "$work/bench-$1.json"
}

step write 40 "$python" experiments/gpu_check.py write "$work"
step tests 150 "$python" -m pytest -q -p no:cacheprovider --junitxml "$work/tests.xml" tests/gpu

against=(--against hf-tuned)
step accelerate 20 "$python" -c 'import accelerate'
if ((code)); then
  echo '   without accelerate there is no Trainer: mtl is measured alone'
  against=()
fi
if [[ $kind == cuda ]]; then
  # A fixed number, so that a slower peer cannot use up the minutes; seconds for either side on a recent GPU.
  length=(--pairs 2 --updates 200 --profile)
  bench bert-base 12 768 12 3072
  bench minilm 6 384 12 1536
else
  length=(--pairs 1 --updates 3)
  bench tiny 2 32 2 64
fi

"$python" experiments/gpu_check.py summary "$work" "$out"
