export EXP=a/small.yaml NNODES=4 SEQ=64
bash ./examples/run_slurm_pretrain.sh --micro_batch_size 8 --fp8=hybrid a=b
primus-cli slurm srun -N 2 -- train pretrain --config small.yaml --seq_length 64
