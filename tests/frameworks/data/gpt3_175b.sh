#!/bin/sh
# GPT-3 175B; sources in README.md
GPUS=8
NODES=16
RANKS=$(($GPUS*$NODES))

LAUNCH="--nproc_per_node $GPUS --nnodes $NODES --master_port 6000"
SHAPE=(
  --num-layers 96 --hidden-size 12288   # 175B
  --num-attention-heads 96
  --seq-length 2048 --max-position-embeddings 2048
  --attention-backend auto
)
PARALLEL="--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16"

torchrun $LAUNCH pretrain_gpt.py ${SHAPE[@]} $PARALLEL \
  --micro-batch-size 1 --global-batch-size 1536 --rampup-batch-size 16 16 5859375 \
  --train-iters 500000 --lr 6.0e-5 --min-lr 6.0e-6 --lr-decay-style cosine \
  --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --clip-grad 1.0 \
  --init-method-std 0.006 --fp16 \
  --data-path $1 --vocab-file $2 --split 949,50,1 \
  # --bf16
  --log-interval 100 --eval-iters 10
