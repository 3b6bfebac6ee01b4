AC=none
if [ "$AC" = full ]; then O="--recompute-granularity full"; elif [[ $AC == sel* ]]; then O=--recompute-activations
else O=""; fi
case "${SIZE:-8B}" in "8B"|small) L=32;; 7*) L=28 ;; *) L=94; esac
while [ $# -gt 0 ]; do shift; done
for n in 8; do G=$n; done
torchrun --nproc_per_node $G pretrain_gpt.py --num-layers $L --hidden-size 64 --num-attention-heads 4 \
  --max-position-embeddings 64 --seq-length 64 --tensor-model-parallel-size $((8 / 2 / 2)) $O 2>&1 | tee log
