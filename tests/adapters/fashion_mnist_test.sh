#!/usr/bin/env bash
# Runs the example as a person would. Usage: fashion_mnist_test.sh CASE FARANDOLE FASHION_MNIST
set -euo pipefail

case_name=$1
farandole=$2
program=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  [[ ! -s $work/out ]] || sed 's/^/out: /' "$work/out" >&2
  [[ ! -s $work/err ]] || sed 's/^/err: /' "$work/err" >&2
  exit 1
}

# on RANKS ARGUMENTS...: output in $work/out and $work/err, exit code in $code
on() {
  local ranks=$1
  shift
  code=0
  "$farandole" run -np "$ranks" "$program" "$@" >"$work/out" 2>"$work/err" || code=$?
}

# json FIELD: from the last line of JSON
json() {
  sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$work/out" | tail -n 1
}

# close_to A B TOLERANCE
close_to() {
  awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(d <= t) }'
}

losses() {
  sed -n 's/.*Epoch [0-9/]*: loss \([0-9.]*\).*/\1/p' "$work/out"
}

small=(--limit 2000 --epochs 2 --batch-size 20 --json)

expect_refusal() { # expect_refusal TEXT
  [[ $code -ne 0 ]] || fail "exit code 0"
  grep -q -- "$1" "$work/err" "$work/out" || fail "does not say: $1"
}

case $case_name in
  two_ranks_equal_one)
    # The same global batch and the same rate: what differs is the order in which float32 values are
    # summed. The losses agree to 3 decimals, the accuracy to 10 images of 2000.
    on 1 --limit 2000 --epochs 2 --batch-size 40 --lr 0.02 --json
    [[ $code -eq 0 ]] || fail "one rank: exit code $code"
    one=$(json test_accuracy)
    mapfile -t one_losses < <(losses)
    on 2 --limit 2000 --epochs 2 --batch-size 20 --lr 0.01 --json
    [[ $code -eq 0 ]] || fail "two ranks: exit code $code"
    [[ $(json ranks) == 2 ]] || fail "not two ranks"
    mapfile -t two_losses < <(losses)
    [[ ${#one_losses[@]} -eq 2 && ${#two_losses[@]} -eq 2 ]] || fail "two lines of losses expected"
    for i in 0 1; do
      close_to "${one_losses[i]}" "${two_losses[i]}" 0.001 ||
        fail "loss of epoch $i: ${one_losses[i]} on one rank, ${two_losses[i]} on two"
    done
    close_to "$one" "$(json test_accuracy)" 0.005 ||
      fail "accuracy: $one on one rank, $(json test_accuracy) on two"
    awk -v a="$one" 'BEGIN { exit !(a > 0.5) }' || fail "accuracy $one: it has learnt nothing"
    grep -q '^.*Test accuracy: 0\.' "$work/out" || fail "no accuracy for people"
    grep -q 'Number of ranks: 2' "$work/out" || fail "no number of ranks"
    grep -q 'Total time is: ' "$work/out" || fail "no time"
    ;;

  resume)
    # Stopping after the first epoch and going on gives what an uninterrupted run gives.
    on 2 "${small[@]}" --checkpoint "$work/whole"
    [[ $code -eq 0 ]] || fail "exit code $code"
    expected=$(json test_accuracy)
    # Killed from outside as soon as the first checkpoint is there.
    "$farandole" run -np 2 "$program" "${small[@]}" --checkpoint "$work/part" >"$work/out" 2>&1 &
    job=$!
    for _ in $(seq 600); do
      [[ ! -e $work/part ]] || break
      kill -0 "$job" 2>/dev/null || break
      sleep 0.05
    done
    kill -TERM "$job" 2>/dev/null || true
    wait "$job" || true
    [[ -e $work/part ]] || fail "no checkpoint after the first epoch"
    on 2 "${small[@]}" --checkpoint "$work/part" --resume
    [[ $code -eq 0 ]] || fail "resumed: exit code $code"
    ! grep -q 'Epoch 1/2' "$work/out" || fail "began again"
    close_to "$expected" "$(json test_accuracy)" 0.005 ||
      fail "accuracy $expected without, $(json test_accuracy) with an interruption"
    ;;

  bad_checkpoint)
    on 2 --limit 200 --epochs 1 --checkpoint "$work/ck"
    [[ $code -eq 0 ]] || fail "exit code $code"
    printf 'X' | dd of="$work/ck" bs=1 seek=5000 conv=notrunc status=none
    on 2 --limit 200 --epochs 2 --checkpoint "$work/ck" --resume
    expect_refusal 'damaged: wrong checksum'
    truncate -s 3000 "$work/ck"
    on 2 --limit 200 --epochs 2 --checkpoint "$work/ck" --resume
    expect_refusal 'damaged: 3000 bytes'
    on 2 --limit 200 --epochs 2 --checkpoint "$work/none" --resume
    expect_refusal 'No such file'
    ;;

  bad_data)
    on 2 --data "$work/none"
    expect_refusal 'no such directory'
    mkdir "$work/data"
    on 2 --data "$work/data"
    expect_refusal 'neither train-images-idx3-ubyte'
    ln -s /usr/share/datasets/fashion-mnist/*labels* /usr/share/datasets/fashion-mnist/t10k-images* "$work/data"
    head -c 1000000 /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz \
      >"$work/data/train-images-idx3-ubyte.gz"
    on 2 --data "$work/data"
    expect_refusal 'train-images-idx3-ubyte.gz: truncated'
    on 2 --epochs none
    expect_refusal '--epochs'
    ;;

  independent)
    on 2 "${small[@]}" --independent
    [[ $code -eq 0 ]] || fail "exit code $code"
    [[ $(json independent) == true && $(json ranks) == 2 ]] || fail "not two independent ranks"
    close_to "$(json images_per_second)" 0 0 && fail "no speed"
    ;;

  *)
    fail "no such case: $case_name"
    ;;
esac
echo "passed: $case_name"
