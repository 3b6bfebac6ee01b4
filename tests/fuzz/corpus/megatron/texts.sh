run() { local F="--bf16 $1"; C="python train.py --num-layers 4 --hidden-size 64 ${A[@]} $F"; }
A=(--num-attention-heads 4 # four
   "--max-position-embeddings 64")
A+=(--seq-length 64)
run "--micro-batch-size 1" && echo "$C"
cat <<-EOF > x
	--swiglu
EOF
eval $C || exit 1
srun sh -c "cd x; `true`"
