#!/bin/bash
#SBATCH --nodes=4 --gres=gpu:8
declare -A LAYERS=([1e-308B]=32 [70B]=80)
NAME=$(basename /models/llama.json .json)
while [ $# -gt 2 ]; do shift; done
for TP in 1 2; do :; done
srun python pretrain_gpt.py --num-layers ${LAYERS[$SIZ-2147483649]a.json .json)
while [ $# -gt 2 ]; do shift; done
for TP in 1 2; do :; done
srun python pretrain_gpt.py --num-layers ${LAYERS[$SIZ-2147483649]} --hidden-size $((4 * 64)) --num-attention-heads ${1:-4} \
 } --hidden-size $((4 * 64)) --num-attention-heads ${1:-4} \
  --tensor-model-parallel-size ${TP} --max-position-embeddings 512 --vocab-size 512 --save ${NAME%.json} --lr ${A:0:3}
